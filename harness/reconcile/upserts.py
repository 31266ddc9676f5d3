"""Upserts: the last record of an identity counts, and a record without a value deletes it.

Compacted topics are read this way, and upsert sinks write this way. The last record is the one with
the highest offset in its partition. Where an identity is in several partitions, the last record of
each remains, and all but one of them are duplicates.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.retractions import is_malformed
from streamquake.harness.reconcile.shape import Shape


def deletes_without_key(deletes: Column, identity: Iterable[Column]) -> Column:
    """Whether a record deletes but has no key, so that it cannot be judged."""
    return deletes & F.isnull(F.coalesce(*(key.cast("string") for key in identity)))


def last_versions(actual: DataFrame, shape: Shape) -> DataFrame:
    """The last record of each identity that is not deleted, and every unreadable record."""
    assert shape.deletes is not None
    assert shape.position is not None
    malformed = is_malformed(shape)
    last_first = Window.partitionBy(*shape.identity, *shape.lane, malformed).orderBy(
        F.desc(shape.position)
    )
    marked = actual.withColumn("_rank", F.row_number().over(last_first))
    is_last = (F.col("_rank") == 1) & ~F.col(shape.deletes)
    return marked.where(malformed | is_last).drop("_rank")
