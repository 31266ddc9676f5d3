"""Order: records that come after one with a higher sequence, per key and lane.

Only the first record of each identity counts: later copies would look like steps back. Phantoms
have no place in any order. Both are taken out first, of the records in dirty buckets. Elsewhere
nothing is there that was not sent, but what was sent twice is there twice. So steps back that are
found are counted again without any later copies (`first_copies`). Where none are found, none can
come of taking records out.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.reconcile.joining import same
from streamquake.harness.reconcile.shape import Shape


def steps_back(actual: DataFrame, shape: Shape) -> DataFrame:
    """The reordered records: identity, key, place, and `before`, the sequence just before them."""
    assert shape.sequence is not None
    assert shape.position is not None
    stream = Window.partitionBy(*shape.key, *shape.lane).orderBy(shape.position)
    before = _placed(actual, shape).withColumn("before", F.lag(shape.sequence).over(stream))
    return before.where(F.col("before") > F.col(shape.sequence))


def without_extras(
    actual: DataFrame, shape: Shape, *, phantoms: DataFrame | None, duplicates: bool
) -> DataFrame:
    """Records with what their order takes, without phantoms and without all copies but the first.

    `phantoms` holds the identities of the phantoms, None where there are none; `duplicates` says
    whether any record has extra copies.
    """
    kept = _placed(actual, shape)
    if phantoms is not None:
        kept = _without(kept, phantoms, shape)
    return first_copies(kept, shape) if duplicates else kept


def first_copies(records: DataFrame, shape: Shape) -> DataFrame:
    """Of each identity the record that came first, with what their order takes."""
    copies = Window.partitionBy(*shape.identity).orderBy(*shape.place)
    # Moved by key alone, which serves the next window too: one shuffle instead of two.
    placed = _placed(records, shape).repartition(*shape.key)
    return placed.withColumn("_copy", F.row_number().over(copies)).where("_copy = 1").drop("_copy")


def _placed(records: DataFrame, shape: Shape) -> DataFrame:
    """What the order takes of the records. One without a sequence has no place in any order."""
    assert shape.sequence is not None
    names = (*shape.identity, *shape.key, shape.sequence, *shape.place)
    whole = records.select(*dict.fromkeys(names))
    return whole.where(F.col(shape.sequence).isNotNull())


def _without(records: DataFrame, phantoms: DataFrame, shape: Shape) -> DataFrame:
    where = same(shape.identity, "a", "f")
    return records.alias("a").join(phantoms.alias("f"), where, "left_anti")
