"""A record that nobody sent."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import FAR, Bed
from streamquake.harness.selftest.plant import Plant, Sides, first_send, plants, strangers


@plants.register
class PhantomUnsent(Plant):
    """A record whose identity is nearly one that was sent: by a blank, a sign, a last digit."""

    name = "phantom_unsent"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"phantom": 1, "actual": 1}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        more = strangers(bed, hit).where(hit & first_send())
        more = more.withColumn("offset", F.col("offset") + FAR)
        return Sides(expected=bed.sent(), actual=bed.seen().unionByName(more))
