"""A record that takes back what nobody said."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.reconcile.shape import UNMATCHED
from streamquake.harness.selftest.dataset import Bed
from streamquake.harness.selftest.plant import Plant, Sides, first_send, plants, strangers


@plants.register
class UnmatchedRetraction(Plant):
    """Every record is taken back and said again, as in a changelog, which leaves what was there; at
    the spots something is taken back that nobody said."""

    name = UNMATCHED
    also = (UNMATCHED,)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {UNMATCHED: 1}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        said = bed.seen().withColumn("retracts", F.lit(False))
        back = bed.seen().withColumns({"retracts": F.lit(True), "offset": F.col("offset") + 1})
        again = said.withColumn("offset", F.col("offset") + 2)
        never = strangers(bed, hit).where(hit & first_send())
        never = never.withColumns({"retracts": F.lit(True), "offset": F.col("offset") + 3})
        changelog = said.unionByName(back).unionByName(again).unionByName(never)
        return Sides(expected=bed.sent(), actual=changelog)
