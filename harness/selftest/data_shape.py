"""The base of every data shape (`harness/selftest/shapes.py`).

Every record is a pure function of (seed, unit, nth), written as native expressions of Spark: no
Python row, no file.

A *unit* is one identity, numbered from 0; it is sent `sends` times, numbered by `nth`. The units 2j
and 2j + 1 are a pair: neighbours of one key, whose order can be exchanged without any other record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F

AMOUNTS = 1000
"""Amounts repeat, as they do in real data: a value does not identify its record."""


class DataShape:
    """The base of every data shape: text keys, sequence numbers without gaps, a whole number."""

    name: ClassVar[str]
    sends: ClassVar[int] = 1
    """How often each identity is sent."""
    weight: ClassVar[int] = 1
    """Shapes with large records have fewer of them: their number is divided by this."""
    key_count: ClassVar[int] = 64
    ordered: ClassVar[bool] = True
    """Whether the records have a sequence; without one, order must be reported as not judged."""
    identity: ClassVar[tuple[str, ...]] = ("key", "seq")
    compare: ClassVar[tuple[str, ...]] = ("amount", "checksum")

    def keys(self, units: int) -> int:
        """The number of keys."""
        return self.key_count

    def key_number(self, units: int) -> Column:
        """The number of the key of a record, from its `pair` (half the number of its unit)."""
        return F.col("pair") % self.keys(units)

    def sequence(self, units: int) -> Column:
        """The sequence number within the key: how many earlier units the key has."""
        return F.expr(f"pair div {self.keys(units)}") * 2 + F.col("unit") % 2

    def key(self) -> Column:
        """The key of the record, from `key_number`."""
        return F.concat(F.lit("k-"), F.col("key_number").cast("string"))

    def fields(self) -> Mapping[str, Column]:
        """The fields besides key, sequence and checksum, from `unit`, `nth` and `hashed`."""
        return {"amount": self.amount()}

    def amount(self) -> Column:
        """A whole number that differs between the sends of one identity."""
        return F.pmod(F.col("hashed"), F.lit(AMOUNTS)) * self.sends + F.col("nth")

    def rewritten(self) -> Mapping[str, Column]:
        """The columns that the output has with another representation of the same value."""
        return {}

    def unknown_identity(self) -> Mapping[str, Column]:
        """The columns that turn an identity into a similar one that was not sent."""
        return {"key": F.concat("key", F.lit(" "))}

    def altered(self) -> Mapping[str, Column]:
        """The columns that change the value as little as possible."""
        return {"amount": F.col("amount") + 1}
