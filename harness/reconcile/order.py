"""Order: records that come after one with a higher sequence, per key and lane.

Phantoms have no place in any order: they are taken out first (`without_phantoms`), of the records
in dirty buckets, as elsewhere nothing is there that was not sent. Of each identity only the first
record counts, since later copies would look like steps back, also where a record was sent twice.
So steps back that are found are counted again among the `first_copies`. Where none are found, none
can come of taking records out.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.identity_join import same_values
from streamquake.harness.reconcile.shape import Shape


def out_of_order(actual: DataFrame, shape: Shape) -> DataFrame:
    """The reordered records: identity, key, place, and `before`, the sequence just before them."""
    assert shape.sequence is not None
    assert shape.position is not None
    stream = Window.partitionBy(*shape.key, *shape.lane).orderBy(shape.position)
    before = _ordering_columns(actual, shape).withColumn(
        "before", F.lag(shape.sequence).over(stream)
    )
    return before.where(F.col("before") > F.col(shape.sequence))


def without_phantoms(records: DataFrame, phantoms: DataFrame, shape: Shape) -> DataFrame:
    """Records with what their order takes, but for those whose identity is among the phantoms."""
    where = same_values(shape.identity, "a", "f")
    return (
        _ordering_columns(records, shape).alias("a").join(phantoms.alias("f"), where, "left_anti")
    )


def first_copies(records: DataFrame, shape: Shape) -> DataFrame:
    """Of each identity the record that came first, with what their order takes."""
    copies = Window.partitionBy(*shape.identity).orderBy(*shape.place)
    # Moved by key alone, which serves the next window too: one shuffle instead of two.
    placed = _ordering_columns(records, shape).repartition(*shape.key)
    return placed.withColumn("_copy", F.row_number().over(copies)).where("_copy = 1").drop("_copy")


def _ordering_columns(records: DataFrame, shape: Shape) -> DataFrame:
    """What the order takes of the records. One without a sequence has no place in any order."""
    assert shape.sequence is not None
    names = (*shape.identity, *shape.key, shape.sequence, *shape.place)
    whole = records.select(*dict.fromkeys(names))
    return whole.where(F.col(shape.sequence).isNotNull())
