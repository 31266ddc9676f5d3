"""A retraction of a record that was not added."""

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
    """Every record is retracted and added again, as in a changelog, which changes nothing. At each
    place there is also a retraction of a record that was never added."""

    name = UNMATCHED
    also = (UNMATCHED,)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {UNMATCHED: 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        added = dataset.actual().withColumn("retracts", F.lit(False))
        retracted = dataset.actual().withColumns(
            {"retracts": F.lit(True), "offset": F.col("offset") + 1}
        )
        added_again = added.withColumn("offset", F.col("offset") + 2)
        unmatched = unknown_records(dataset, selected).where(selected & first_send())
        unmatched = unmatched.withColumns({"retracts": F.lit(True), "offset": F.col("offset") + 3})
        changelog = added.unionByName(retracted).unionByName(added_again).unionByName(unmatched)
        return PlantedSides(expected=dataset.expected(), actual=changelog)
