"""A record that retracts what was not added."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.reconcile.shape import UNMATCHED
from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import (
    Plant,
    PlantedSides,
    first_send,
    plants,
    unknown_records,
)


@plants.register
class UnmatchedRetraction(Plant):
    """Every record is retracted and added again, as in a changelog, which changes nothing; at the
    places a record is retracted that was not added."""

    name = UNMATCHED
    also = (UNMATCHED,)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {UNMATCHED: 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        added = dataset.seen().withColumn("retracts", F.lit(False))
        back = dataset.seen().withColumns({"retracts": F.lit(True), "offset": F.col("offset") + 1})
        again = added.withColumn("offset", F.col("offset") + 2)
        never = unknown_records(dataset, selected).where(selected & first_send())
        never = never.withColumns({"retracts": F.lit(True), "offset": F.col("offset") + 3})
        changelog = added.unionByName(back).unionByName(again).unionByName(never)
        return PlantedSides(expected=dataset.sent(), actual=changelog)
