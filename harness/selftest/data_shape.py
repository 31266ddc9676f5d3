"""What a data shape is: a kind of records that reconciliation must be able to judge.

A data shape is one file in `harness/selftest/shapes/`. Every record is a pure function of
(seed, unit, nth), written as native expressions of Spark: no row of Python, nothing read.

A *unit* is one identity, numbered from 0; it is sent `sends` times, numbered by `nth`. Every key
sends its units two by two (2j and 2j + 1 are neighbours in one key), so that two records can be
exchanged in their order without a look at any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.topologies.registry import Registry

AMOUNTS = 1000
"""Amounts repeat, as they do in real data: a value says nothing of its record."""


class DataShape:
    """The base of every data shape: text keys, sequence numbers without gaps, a whole number."""

    name: ClassVar[str]
    sends: ClassVar[int] = 1
    """How often each identity is sent."""
    weight: ClassVar[int] = 1
    """So many times fewer records are made, where one record is that much larger."""
    ordered: ClassVar[bool] = True
    """Whether the judge is told a sequence; without one it must say that it did not look."""
    identity: ClassVar[tuple[str, ...]] = ("key", "seq")
    compare: ClassVar[tuple[str, ...]] = ("amount", "checksum")

    def keys(self, units: int) -> int:
        """How many keys there are."""
        raise NotImplementedError

    def key_number(self, units: int) -> Column:
        """Which key a record has, of its `pair` (the unit's number halved)."""
        return F.col("pair") % self.keys(units)

    def sequence(self, units: int) -> Column:
        """How many units of its key came before."""
        return F.expr(f"pair div {self.keys(units)}") * 2 + F.col("unit") % 2

    def key(self) -> Column:
        """The key as it stands in the record, of `key_number`."""
        return F.concat(F.lit("k-"), F.col("key_number").cast("string"))

    def fields(self) -> Mapping[str, Column]:
        """The fields beside key, sequence and checksum, of `unit`, `nth` and `hashed`."""
        return {"amount": self.amount()}

    def amount(self) -> Column:
        """A whole number that differs between the sends of one identity."""
        return F.pmod(F.col("hashed"), F.lit(AMOUNTS)) * self.sends + F.col("nth")

    def rewritten(self) -> Mapping[str, Column]:
        """What writes the same values in another way; so they come out."""
        return {}

    def unknown_identity(self) -> Mapping[str, Column]:
        """What turns a record into one of an identity that nobody sent: as near as can be."""
        return {"key": F.concat("key", F.lit(" "))}

    def altered(self) -> Mapping[str, Column]:
        """What turns a record into one with another value: by as little as can be."""
        return {"amount": F.col("amount") + 1}


data_shapes: Registry[DataShape] = Registry("data shape", "streamquake.harness.selftest.shapes")
