"""A record that was acknowledged and did not come out."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import Bed
from streamquake.harness.selftest.plant import Plant, Sides, first_send, plants


@plants.register
class Lost(Plant):
    """One copy is taken away."""

    name = "lost"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"lost": 1, "actual": -1}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        return Sides(expected=bed.sent(), actual=bed.seen().where(~(hit & first_send())))
