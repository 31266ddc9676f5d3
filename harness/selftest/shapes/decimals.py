"""Decimals and times, with more digits than a floating-point number can hold."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.data_shape import DataShape, data_shapes

BEYOND = Decimal(10) ** 25
"""Identities begin here: beyond the whole numbers of 64 bits."""
LEAST = Decimal("0.000000000001")
"""By so little an amount is altered."""
CENT = Decimal("0.01")


@data_shapes.register
class Decimals(DataShape):
    """Identities of 26 digits with two places, amounts with twelve places, times to the µs."""

    name = "decimals"
    identity = ("id",)
    compare = ("amount", "at", "checksum")

    def keys(self, units: int) -> int:
        return 64

    def fields(self) -> Mapping[str, Column]:
        return {
            "id": (F.col("unit").cast("decimal(28,0)") + F.lit(BEYOND)).cast("decimal(32,2)"),
            "amount": (self.amount() + F.lit(LEAST)).cast("decimal(38,12)"),
            "at": F.timestamp_micros(F.pmod(F.col("hashed"), F.lit(1 << 50))),
        }

    def unknown_identity(self) -> Mapping[str, Column]:
        return {"id": (F.col("id") + F.lit(CENT)).cast("decimal(32,2)")}

    def altered(self) -> Mapping[str, Column]:
        return {"amount": (F.col("amount") + F.lit(LEAST)).cast("decimal(38,12)")}
