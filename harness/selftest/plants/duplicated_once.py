"""A record that is in the output a second time, long after the first, as after a restart."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import FAR, PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants


@plants.register
class DuplicatedOnce(Plant):
    """A copy at the end of the partition, which does not count as reordered."""

    name = "duplicated_once"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"duplicated": 1, "actual": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        actual = dataset.actual()
        copy = actual.where(selected & first_send()).withColumn("offset", F.col("offset") + FAR)
        return PlantedSides(expected=dataset.expected(), actual=actual.unionByName(copy))
