"""The two sides brought to one form: identity, a hash of the compared values, and what a row is.

Identity keeps its real columns, so it is exact. Compared values are hashed to 64 bits. Nulls are
hashed with a mark, since Spark's xxhash64 skips them and (null, 1) would equal (1, null).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.shape import Shape

ACKNOWLEDGED, FAILED, UNKNOWN = "acknowledged", "failed", "unknown"


class What(IntEnum):
    """What one row stands for. Rows up to `REFUSED` are of the expected side."""

    OK = 0
    UNKNOWN = 1
    REFUSED = 2
    UNREAD_SENT = 3
    """Expected, and cannot be read: it is counted, and compared with nothing."""
    ODD = 4
    """Expected, with a status that is none."""
    HERE = 5
    MALFORMED = 6
    """There, and could not be read: nobody sent it."""
    UNPLACED = 7
    """There, and stands nowhere in the order."""
    UNREAD_SEEN = 8
    """There, cannot be read, and is compared with nothing."""


SENT = (What.OK, What.UNKNOWN)
"""What may be there."""
SEEN = (What.HERE, What.MALFORMED, What.UNPLACED)
"""What is there and is compared."""


def both_sides(expected: DataFrame, actual: DataFrame, shape: Shape, buckets: int) -> DataFrame:
    """Rows of both sides: identity, `bucket`, `values`, and `what`, a number of `What`."""
    status = F.col(shape.status) if shape.status else F.lit(ACKNOWLEDGED)
    sent = (
        F.when(_marked(shape.unread), What.UNREAD_SENT.value)
        .when(status == ACKNOWLEDGED, What.OK.value)
        .when(status == UNKNOWN, What.UNKNOWN.value)
        .when(status == FAILED, What.REFUSED.value)
        .otherwise(What.ODD.value)
    )
    seen = (
        F.when(_marked(shape.unread), What.UNREAD_SEEN.value)
        .when(_marked(shape.malformed), What.MALFORMED.value)
        .when(_marked(shape.unplaced), What.UNPLACED.value)
        .otherwise(What.HERE.value)
    )
    return _rows(expected, shape, buckets, sent).unionByName(_rows(actual, shape, buckets, seen))


def bucket_of(shape: Shape, buckets: int) -> Column:
    """The bucket of a record, by its identity; `buckets` is a power of two."""
    return hash_of(shape.identity).bitwiseAND(F.lit(buckets - 1).cast("bigint"))


def hash_of(columns: Sequence[str]) -> Column:
    """A 64-bit hash of columns in which a null is a value of its own."""
    marks = [F.isnull(F.col(name)).cast("int") for name in columns]
    return F.xxhash64(*(F.col(name) for name in columns), *marks)


def _marked(name: str | None) -> Column:
    return F.col(name) if name else F.lit(False)


def _rows(side: DataFrame, shape: Shape, buckets: int, what: Column) -> DataFrame:
    return side.select(
        *shape.identity,
        bucket_of(shape, buckets).alias("bucket"),
        hash_of((*shape.identity, *shape.compare)).alias("values"),
        what.alias("what"),
    )
