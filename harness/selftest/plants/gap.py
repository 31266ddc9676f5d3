"""A key's sequence that jumps over a number."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import FAR, Bed
from streamquake.harness.selftest.plant import Plant, Sides, first_send, plants, strangers


@plants.register
class Gap(Plant):
    """Two records of a key of their own that nobody sent, with one number missing between them: of
    what was sent, a lost record is a gap only where others of its key stand on both sides."""

    name = "gap"
    spot = 2
    needs_order = True
    also = ("gap",)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"gap": 1, "phantom": 2, "actual": 2}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        pair = F.expr("cast(unit div 2 as string)")
        more = strangers(bed, hit).where(hit & first_send()).withColumns(
            {
                "key": F.concat_ws(" ", F.lit("gap"), pair),
                "seq": F.col("seq") + F.col("unit") % 2,
                "offset": F.col("offset") + FAR,
            }
        )  # fmt: skip
        return Sides(expected=bed.sent(), actual=bed.seen().unionByName(more))
