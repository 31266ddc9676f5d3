"""A record that came again after the next one of its key."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import ROOM, Bed
from streamquake.harness.selftest.plant import Plant, Sides, first_send, plants


@plants.register
class Regression(Plant):
    """Of a pair the first comes again right after the second: a copy, and one step back."""

    name = "regression"
    spot = 2
    needs_order = True
    also = ("regression",)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"regression": 1, "duplicated": 1, "actual": 1}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        seen = bed.seen()
        first = hit & first_send() & (F.col("unit") % 2 == 0)
        behind = F.col("offset") + bed.shape.sends * ROOM + 1
        again = seen.where(first).withColumn("offset", behind)
        return Sides(expected=bed.sent(), actual=seen.unionByName(again))
