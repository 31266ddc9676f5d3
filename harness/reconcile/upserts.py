"""Upserts: of records with one identity the last counts, and one without a value deletes the rest.

So a compacted topic is read, and so sinks write that know the key of a row. Last is what stands
last in the partition; of one identity in several partitions there is no last, and each partition's
own is left, so that all but one are copies too many.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.retractions import is_malformed
from streamquake.harness.reconcile.shape import Shape


def deletes_without_key(deletes: Column, identity: Iterable[Column]) -> Column:
    """Whether a record deletes, and does not say what: it cannot be judged."""
    return deletes & F.isnull(F.coalesce(*(each.cast("string") for each in identity)))


def last_versions(actual: DataFrame, shape: Shape) -> DataFrame:
    """What stands in the end, and every record that could not be read."""
    assert shape.deletes is not None
    assert shape.position is not None
    spoilt = is_malformed(shape)
    last_first = Window.partitionBy(*shape.identity, *shape.lane, spoilt).orderBy(
        F.desc(shape.position)
    )
    marked = actual.withColumn("_turn", F.row_number().over(last_first))
    stands = (F.col("_turn") == 1) & ~F.col(shape.deletes)
    return marked.where(spoilt | stands).drop("_turn")
