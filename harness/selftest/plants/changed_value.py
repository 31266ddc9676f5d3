"""A record that came out with another value."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import Bed
from streamquake.harness.selftest.plant import Plant, Sides, first_send, plants


@plants.register
class ChangedValue(Plant):
    """A value altered by as little as can be; of several sends, one's value in another's place."""

    name = "changed_value"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"changed": 1}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        return Sides(
            expected=bed.sent(), actual=bed.seen(hit & first_send(), **bed.shape.altered())
        )
