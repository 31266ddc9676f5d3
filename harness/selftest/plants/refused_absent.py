"""A refused send that did not come out: as it should be."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import Bed
from streamquake.harness.selftest.plant import Plant, Sides, plants
from streamquake.harness.selftest.statuses import refused


@plants.register
class RefusedAbsent(Plant):
    """All sends of an identity failed, and are not there; nothing may be found."""

    name = "refused_absent"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"expected": -sends, "actual": -sends}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        return Sides(expected=bed.sent(refused(hit)), actual=bed.seen().where(~hit))
