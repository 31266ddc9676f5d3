"""A record that was not sent."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import FAR, PlantingDataset
from streamquake.harness.selftest.plant import (
    Plant,
    PlantedSides,
    first_send,
    plants,
    unknown_records,
)


@plants.register
class PhantomUnsent(Plant):
    """A record whose identity differs from a sent one by a space, a sign, or the last digit."""

    name = "phantom_unsent"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"phantom": 1, "actual": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        unsent = unknown_records(dataset, selected).where(selected & first_send())
        unsent = unsent.withColumn("offset", F.col("offset") + FAR)
        return PlantedSides(
            expected=dataset.expected(), actual=dataset.actual().unionByName(unsent)
        )
