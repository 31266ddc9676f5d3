"""The drill: the exact account of every record in a dirty bucket.

One shuffle by identity, then two hash aggregations that need none: copies by value, and values by
identity. Values are compared as they are, not by a hash of them. Only fixed-size counters are kept
beside them, so it spills instead of failing, also when every record of a broken job differs.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.row_hashes import ACTUAL_KINDS, VALUE, RowKind
from streamquake.harness.reconcile.shape import Shape

_UNREAD = "_unread"
CLASSES = ("lost", "duplicated", "phantom", "changed", "unknown_absent")


def count_anomalies(rows: DataFrame, shape: Shape) -> DataFrame:
    """Of `rows_by_value`, one row per identity that is in a class, and how often it is in each.

    Several sends of one identity are as many records; each may have one copy.
    """
    # A record that could not be read is none of nulls, though its columns are null.
    groups = [*shape.identity, _UNREAD]
    values = [f"{VALUE}{number}" for number in range(len(shape.compare))]
    counters = {
        "ok": _count(RowKind.OK),
        "unknown": _count(RowKind.UNKNOWN),
        "failed": _count(RowKind.REFUSED),
        "here": _count(*ACTUAL_KINDS),
    }
    by_value = (
        rows.withColumn(_UNREAD, F.col("what") == RowKind.MALFORMED.value)
        .repartition(*groups)
        .groupBy(*groups, *values)
        .agg(*(count.alias(name) for name, count in counters.items()))
        .withColumn("surplus", F.expr("greatest(0, here - ok - unknown)"))
        .withColumn("alien", F.expr("IF(ok + unknown = 0, here, 0)"))
        .withColumn("short", F.expr("greatest(0, ok - here)"))
    )
    account = by_value.groupBy(*groups).agg(
        *(F.sum(name).alias(name) for name in (*counters, "surplus", "alien", "short"))
    )
    return account.select(
        *shape.identity,
        F.expr("greatest(0, ok - here)").alias("lost"),
        F.expr("IF(ok + unknown > 0, greatest(0, here - ok - unknown), 0)").alias("duplicated"),
        F.expr("IF(ok + unknown = 0, here, 0)").alias("phantom"),
        F.expr(_CHANGED).alias("changed"),
        F.expr("greatest(0, unknown - greatest(0, here - ok))").alias("unknown_absent"),
        F.expr("failed > 0 AND ok + unknown = 0").alias("refused"),
    ).where(" OR ".join(f"{name} > 0" for name in CLASSES))


def _count(*kinds: RowKind) -> Column:
    return F.count_if(F.col("what").isin([kind.value for kind in kinds]))


_CHANGED = """
    CASE WHEN ok + unknown = 0 THEN 0
         WHEN alien > 0 THEN 1
         WHEN surplus > greatest(0, here - ok - unknown) THEN 1
         WHEN short > greatest(0, ok - here) THEN 1
         ELSE 0 END
"""
"""A copy with a value nobody sent; or, of several sends, one's value in the place of another's, as
that of an unknown send in the place of an acknowledged one's."""
