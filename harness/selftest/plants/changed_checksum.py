"""A record that came out whole, but for its checksum."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import Bed
from streamquake.harness.selftest.plant import Plant, Sides, first_send, plants


@plants.register
class ChangedChecksum(Plant):
    """The last bit of the checksum is another."""

    name = "changed_checksum"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"changed": 1}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        other = F.col("checksum").bitwiseXOR(F.lit(1))
        return Sides(expected=bed.sent(), actual=bed.seen(hit & first_send(), checksum=other))
