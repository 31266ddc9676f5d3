"""Which records of two frames are the same."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F


def same_values(columns: Iterable[str], one: str, other: str) -> Column:
    """Where two frames, by their aliases, agree in all columns; null agrees with null."""
    agree = (
        F.col(f"{one}.{quote_name(n)}").eqNullSafe(F.col(f"{other}.{quote_name(n)}"))
        for n in columns
    )
    return reduce(and_, agree)


def quote_name(name: str) -> str:
    """A name as Spark reads it as one part of a column's name, whatever it is made of."""
    return "`" + name.replace("`", "``") + "`"
