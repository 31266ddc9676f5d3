"""Nulls, in identities and in values."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.data_shape import DataShape, data_shapes


@data_shapes.register
class Nulls(DataShape):
    """One key of sixteen is null; one of two values is null in every record.

    A null key altered is an empty one; a value altered has moved to the other column.
    """

    name = "nulls"
    compare = ("left", "right", "checksum")

    def keys(self, units: int) -> int:
        return 16

    def key(self) -> Column:
        return F.when(F.col("key_number") != 0, super().key())

    def fields(self) -> Mapping[str, Column]:
        on_the_left = F.pmod(F.col("hashed"), F.lit(2)) == 0
        amount = self.amount()
        return {"left": F.when(on_the_left, amount), "right": F.when(~on_the_left, amount)}

    def unknown_identity(self) -> Mapping[str, Column]:
        return {"key": F.when(F.col("key").isNotNull(), F.concat("key", F.lit(" "))).otherwise("")}

    def altered(self) -> Mapping[str, Column]:
        return {"left": F.col("right"), "right": F.col("left")}
