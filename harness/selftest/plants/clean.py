"""Nothing is planted: what is the same must be found the same."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import Bed
from streamquake.harness.selftest.plant import Plant, Sides, plants


@plants.register
class Clean(Plant):
    """Both sides are the same."""

    name = "clean"
    clean = True

    def effect(self, sends: int) -> Mapping[str, int]:
        return {}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        return Sides(expected=bed.sent(), actual=bed.seen())
