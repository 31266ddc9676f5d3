"""Floating-point numbers, which a last bit tells apart and the sign of zero does not."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.data_shape import AMOUNTS, DataShape, data_shapes

BEYOND = 2.0**50
"""Identities begin here, ..."""
LAST_OF_IDENTITY = 2.0**-2
"""... where neighbours of 64 bits lie so far apart."""
LAST_OF_64, LAST_OF_32 = 2.0**-52, 2.0**-23
"""How far neighbours lie apart between one and two."""


@data_shapes.register
class Floats(DataShape):
    """Identities and values of 64 bits, values of 32; the zero in the identity comes out negative.

    Altered is the last bit of one value, of 64 bits or of 32.
    """

    name = "floats"
    identity = ("id", "zero")
    compare = ("amount", "small", "checksum")

    def keys(self, units: int) -> int:
        return 64

    def fields(self) -> Mapping[str, Column]:
        between_one_and_two = self.amount() / F.lit(float(AMOUNTS)) + F.lit(1.0)
        return {
            "id": F.col("unit").cast("double") + F.lit(BEYOND),
            "zero": F.lit(0.0),
            "amount": between_one_and_two,
            "small": between_one_and_two.cast("float"),
        }

    def rewritten(self) -> Mapping[str, Column]:
        return {"zero": F.lit(-0.0)}

    def unknown_identity(self) -> Mapping[str, Column]:
        return {"id": F.col("id") + F.lit(LAST_OF_IDENTITY)}

    def altered(self) -> Mapping[str, Column]:
        wide = F.col("unit") % 2 == 0
        small = (F.col("small") + F.lit(LAST_OF_32)).cast("float")
        return {
            "amount": F.when(wide, F.col("amount") + F.lit(LAST_OF_64)).otherwise(F.col("amount")),
            "small": F.when(wide, F.col("small")).otherwise(small),
        }
