"""The join of two frames by the identity of their records."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F


def same_values(columns: Iterable[str], one: str, other: str) -> Column:
    """Whether the rows of two frames, given by their aliases, are equal in all columns; null equals
    null."""
    equal = (
        F.col(f"{one}.{quote_name(n)}").eqNullSafe(F.col(f"{other}.{quote_name(n)}"))
        for n in columns
    )
    return reduce(and_, equal)


def quote_name(name: str) -> str:
    """A column's name in backticks, so that Spark takes any of its characters literally."""
    return "`" + name.replace("`", "``") + "`"
