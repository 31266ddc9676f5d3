"""A record that came out after everything else in its partition."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import FAR, Bed
from streamquake.harness.selftest.plant import Plant, Sides, plants


@plants.register
class ReorderedFar(Plant):
    """The first of a pair moves behind the partition's end, the later ones before the earlier
    ones: each is a step back, from its own successor or from the one moved before it."""

    name = "reordered_far"
    spot = 2
    needs_order = True

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"reordered": 1}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        moved = hit & (F.col("unit") % 2 == 0)
        return Sides(
            expected=bed.sent(), actual=bed.seen(moved, offset=F.lit(2 * FAR) - F.col("offset"))
        )
