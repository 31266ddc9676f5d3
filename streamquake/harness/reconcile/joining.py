"""Which records of two frames are the same."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F


def same(columns: Iterable[str], one: str, other: str) -> Column:
    """Where two frames, by their aliases, agree in all columns; null agrees with null."""
    return F.expr(" AND ".join(f"{one}.`{name}` <=> {other}.`{name}`" for name in columns))
