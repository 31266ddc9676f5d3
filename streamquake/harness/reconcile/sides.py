"""The two sides brought to one form: identity, a hash of the compared values, and a sign.

Identity keeps its real columns, so it is exact. Compared values are hashed to 64 bits. Nulls are
hashed with a mark, since Spark's xxhash64 skips them and (null, 1) would equal (1, null).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.shape import Shape

ACKNOWLEDGED, FAILED, UNKNOWN = "acknowledged", "failed", "unknown"


def both_sides(expected: DataFrame, actual: DataFrame, shape: Shape, buckets: int) -> DataFrame:
    """Rows of both sides: identity, `bucket`, `values`, and 0 or 1 in `ok`, `unknown`, `failed`
    (expected side), `here` and `malformed` (actual side)."""
    status = F.col(shape.status) if shape.status else F.lit(ACKNOWLEDGED)
    malformed = F.col(shape.malformed) if shape.malformed else F.lit(False)
    wanted = _row(
        expected, shape, buckets,
        ok=status == ACKNOWLEDGED, unknown=status == UNKNOWN, failed=status == FAILED,
        here=F.lit(False), malformed=F.lit(False),
    )  # fmt: skip
    none = F.lit(False)
    found = _row(
        actual, shape, buckets, ok=none, unknown=none, failed=none, here=~none, malformed=malformed
    )
    return wanted.unionByName(found)


def bucket_of(shape: Shape, buckets: int) -> Column:
    """The bucket of a record, by its identity; `buckets` is a power of two."""
    return hash_of(shape.identity).bitwiseAND(F.lit(buckets - 1).cast("bigint"))


def hash_of(columns: Sequence[str]) -> Column:
    """A 64-bit hash of columns in which a null is a value of its own."""
    marks = [F.isnull(F.col(name)).cast("int") for name in columns]
    return F.xxhash64(*(F.col(name) for name in columns), *marks)


def _row(side: DataFrame, shape: Shape, buckets: int, **flags: Column) -> DataFrame:
    return side.select(
        *shape.identity,
        bucket_of(shape, buckets).alias("bucket"),
        hash_of((*shape.identity, *shape.compare)).alias("values"),
        *(flag.cast("bigint").alias(name) for name, flag in flags.items()),
    )
