"""One hot key: what is grouped or sorted by key falls to one task for the most part."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.data_shape import DataShape, data_shapes

COLD_KEYS = 1000


@data_shapes.register
class HotKey(DataShape):
    """Every other pair of records is of one key; a thousand keys share the others."""

    name = "hot_key"

    def keys(self, units: int) -> int:
        return 1 + COLD_KEYS

    def key_number(self, units: int) -> Column:
        cold = F.expr("pair div 2") % COLD_KEYS + 1
        return F.when(_is_hot(), F.lit(0)).otherwise(cold)

    def sequence(self, units: int) -> Column:
        before = F.when(_is_hot(), F.expr("pair div 2")).otherwise(
            F.expr(f"pair div {2 * COLD_KEYS}")
        )
        return before * 2 + F.col("unit") % 2


def _is_hot() -> Column:
    return F.col("pair") % 2 == 0
