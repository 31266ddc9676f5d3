"""A record that is not in the partition of its key."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import PARTITIONS, PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants


@plants.register
class WrongPartition(Plant):
    """The record is in the next partition."""

    name = "wrong_partition"
    needs_order = True
    also = ("wrong_partition",)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"wrong_partition": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        next_partition = (F.col("partition") + 1) % PARTITIONS
        moved = dataset.actual(selected & first_send(), partition=next_partition)
        return PlantedSides(expected=dataset.expected(), actual=moved)
