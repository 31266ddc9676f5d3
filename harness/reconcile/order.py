"""Order: records that arrive after one with a higher sequence, per key and lane.

Phantoms have no place in any order: they are removed first (`without_phantoms`). Only dirty buckets
can have phantoms. Only the first record of each identity counts: a later copy would count as out of
order, also where a record was sent twice. So the keys with some records out of order are
judged again by their first copies. Where a key has none, removing records cannot produce any.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.identity_join import same_values
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.reconcile.values.rank import rank_of

BEFORE = "__before"
"""The sequence of the record just before; no column of a job has this name."""


def records_out_of_order(actual: DataFrame, shape: Shape) -> DataFrame:
    """The reordered records: identity, key, place, and `BEFORE`, the sequence of the record just
    before them."""
    assert shape.sequence is not None
    assert shape.position is not None
    stream = Window.partitionBy(*shape.key, *shape.lane).orderBy(shape.position)
    before = _ordering_columns(actual, shape).withColumn(BEFORE, F.lag(shape.sequence).over(stream))
    kind = actual.schema[shape.sequence].dataType
    return before.where(rank_of(F.col(BEFORE), kind) > rank_of(F.col(shape.sequence), kind))


def without_phantoms(records: DataFrame, phantoms: DataFrame, shape: Shape) -> DataFrame:
    """The ordering columns of all records whose identity is not among the phantoms."""
    where = same_values(shape.identity, "a", "f")
    return (
        _ordering_columns(records, shape).alias("a").join(phantoms.alias("f"), where, "left_anti")
    )


def first_copies_of_keys(records: DataFrame, keys: DataFrame, shape: Shape) -> DataFrame:
    """The first copies of the records whose key is in one of the rows of `keys`."""
    if not shape.key:
        return first_copies(records, shape)
    chosen = keys.select(*shape.key).distinct()
    where = same_values(shape.key, "r", "k")
    ordering = _ordering_columns(records, shape)
    return first_copies(ordering.alias("r").join(chosen.alias("k"), where, "left_semi"), shape)


def first_copies(records: DataFrame, shape: Shape) -> DataFrame:
    """The ordering columns of the first record of each identity."""
    copies = Window.partitionBy(*shape.identity).orderBy(*shape.place)
    # Repartitioned by key alone, which suits the next window too: one shuffle instead of two.
    records_by_key = _ordering_columns(records, shape).repartition(*shape.key)
    return (
        records_by_key.withColumn("_copy", F.row_number().over(copies))
        .where("_copy = 1")
        .drop("_copy")
    )


def _ordering_columns(records: DataFrame, shape: Shape) -> DataFrame:
    """The columns that the order needs. A record without a sequence has no place in any order."""
    assert shape.sequence is not None
    names = (*shape.identity, *shape.key, shape.sequence, *shape.place)
    ordering = records.select(*dict.fromkeys(names))
    return ordering.where(F.col(shape.sequence).isNotNull())
