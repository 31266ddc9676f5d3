"""A record that takes back what nobody said."""

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
    """Every record is taken back and said again, as in a changelog, which leaves what was there; at
    the spots something is taken back that nobody said."""

    name = UNMATCHED
    also = (UNMATCHED,)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {UNMATCHED: 1}

    def sides(self, dataset: PlantingDataset, hit: Column) -> PlantedSides:
        message = dataset.seen().withColumn("retracts", F.lit(False))
        back = dataset.seen().withColumns({"retracts": F.lit(True), "offset": F.col("offset") + 1})
        again = message.withColumn("offset", F.col("offset") + 2)
        never = unknown_records(dataset, hit).where(hit & first_send())
        never = never.withColumns({"retracts": F.lit(True), "offset": F.col("offset") + 3})
        changelog = message.unionByName(back).unionByName(again).unionByName(never)
        return PlantedSides(expected=dataset.sent(), actual=changelog)
