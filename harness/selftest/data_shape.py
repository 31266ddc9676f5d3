"""The base of every data shape (`harness/selftest/shapes.py`).

Every record is a pure function of
(seed, unit, nth), written as native expressions of Spark: no Python row, no file.

A *unit* is one identity, numbered from 0; it is sent `sends` times, numbered by `nth`. Every key
sends its units two by two (2j and 2j + 1 are neighbours in one key), so that two records can be
exchanged in their order without reading any other.
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
    """Divides the number of records, where one record is larger."""
    key_count: ClassVar[int] = 64
    ordered: ClassVar[bool] = True
    """Whether the records have a sequence; without one the order must be reported as not judged."""
    identity: ClassVar[tuple[str, ...]] = ("key", "seq")
    compare: ClassVar[tuple[str, ...]] = ("amount", "checksum")

    def keys(self, units: int) -> int:
        """How many keys there are."""
        return self.key_count

    def key_number(self, units: int) -> Column:
        """Which key a record has, of its `pair` (the unit's number halved)."""
        return F.col("pair") % self.keys(units)

    def sequence(self, units: int) -> Column:
        """How many units of its key are before it."""
        return F.expr(f"pair div {self.keys(units)}") * 2 + F.col("unit") % 2

    def key(self) -> Column:
        """The key in the record, made of `key_number`."""
        return F.concat(F.lit("k-"), F.col("key_number").cast("string"))

    def fields(self) -> Mapping[str, Column]:
        """The fields beside key, sequence and checksum, made of `unit`, `nth` and `hashed`."""
        return {"amount": self.amount()}

    def amount(self) -> Column:
        """A whole number that differs between the sends of one identity."""
        return F.pmod(F.col("hashed"), F.lit(AMOUNTS)) * self.sends + F.col("nth")

    def rewritten(self) -> Mapping[str, Column]:
        """The columns that the output has in another notation of the same value."""
        return {}

    def unknown_identity(self) -> Mapping[str, Column]:
        """The columns of a similar identity that was not sent."""
        return {"key": F.concat("key", F.lit(" "))}

    def altered(self) -> Mapping[str, Column]:
        """The columns of the smallest change of the value."""
        return {"amount": F.col("amount") + 1}
