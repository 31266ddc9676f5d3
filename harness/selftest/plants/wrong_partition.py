"""A record that came out in another partition than its key's."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import PARTITIONS, Bed
from streamquake.harness.selftest.plant import Plant, Sides, first_send, plants


@plants.register
class WrongPartition(Plant):
    """It stands in the next partition."""

    name = "wrong_partition"
    needs_order = True
    also = ("wrong_partition",)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"wrong_partition": 1}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        elsewhere = (F.col("partition") + 1) % PARTITIONS
        moved = bed.seen(hit & first_send(), partition=elsewhere)
        return Sides(expected=bed.sent(), actual=moved)
