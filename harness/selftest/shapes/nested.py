"""Structs, lists and lists in lists, with nulls within them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.data_shape import DataShape, data_shapes


@data_shapes.register
class Nested(DataShape):
    """Every value is there in the other record too, in another place.

    Altered, a value has moved to the neighbouring field, a null to another place in a list, a null
    is missing at a list's end, or two lists have become one.
    """

    name = "nested"
    compare = ("one", "pairs", "lists", "checksum")

    def keys(self, units: int) -> int:
        return 64

    def fields(self) -> Mapping[str, Column]:
        amount, unit = self.amount(), F.col("unit")
        return {
            "one": _pair(amount, F.lit(None)),
            "pairs": F.array(_pair(F.lit(None), amount), F.lit(None)),
            "lists": F.array(F.array(amount), F.array(unit)),
        }

    def altered(self) -> Mapping[str, Column]:
        pairs = F.col("pairs")
        in_turn = {
            "one": [_pair(F.col("one.right"), F.col("one.left")), None, None, None],
            "pairs": [None, F.reverse(pairs), F.slice(pairs, 1, 1), None],
            "lists": [None, None, None, F.array(F.flatten("lists"))],
        }
        return {name: _in_turn(name, changes) for name, changes in in_turn.items()}


def _pair(left: Column, right: Column) -> Column:
    return F.struct(left.cast("bigint").alias("left"), right.cast("bigint").alias("right"))


def _in_turn(name: str, changes: list[Column | None]) -> Column:
    """What a column becomes in every fourth unit; None leaves it as it is."""
    value = F.col(name)
    for turn, change in enumerate(changes):
        if change is not None:
            value = F.when(F.col("unit") % len(changes) == turn, change).otherwise(value)
    return value
