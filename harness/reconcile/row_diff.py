"""The row diff: the exact counts of anomalies of every record in a dirty bucket.

One shuffle by identity, then two hash aggregations without a shuffle: copies by value, and values
by identity. Values are compared directly, not by their hash. The state is fixed-size counters only,
so the aggregation spills instead of failing, even when every record differs.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.row_hashes import ACTUAL_KINDS, VALUE, RowKind
from streamquake.harness.reconcile.shape import Shape

_UNREADABLE = "_unread"
CLASSES = ("lost", "duplicated", "phantom", "changed", "unknown_absent")


def count_anomalies(rows: DataFrame, shape: Shape) -> DataFrame:
    """One row per identity with an anomaly among `rows_by_value`, with its count in each class.

    Several sends of one identity are several records; each may have one copy.
    """
    # An unreadable record is no record of nulls, although its columns are null.
    groups = [*shape.identity, _UNREADABLE]
    values = [f"{VALUE}{number}" for number in range(len(shape.compare))]
    counters = {
        "ok": _count(RowKind.OK),
        "unknown": _count(RowKind.UNKNOWN),
        "failed": _count(RowKind.FAILED),
        "present": _count(*ACTUAL_KINDS),
    }
    by_value = (
        rows.withColumn(_UNREADABLE, F.col("what") == RowKind.MALFORMED.value)
        .repartition(*groups)
        .groupBy(*groups, *values)
        .agg(*(count.alias(name) for name, count in counters.items()))
        .withColumn("surplus", F.expr("greatest(0, present - ok - unknown)"))
        .withColumn("never_sent", F.expr("IF(ok + unknown = 0, present, 0)"))
        .withColumn("shortfall", F.expr("greatest(0, ok - present)"))
    )
    by_identity = by_value.groupBy(*groups).agg(
        *(F.sum(name).alias(name) for name in (*counters, "surplus", "never_sent", "shortfall"))
    )
    return by_identity.select(
        *shape.identity,
        F.expr("greatest(0, ok - present)").alias("lost"),
        F.expr("IF(ok + unknown > 0, greatest(0, present - ok - unknown), 0)").alias("duplicated"),
        F.expr("IF(ok + unknown = 0, present, 0)").alias("phantom"),
        F.expr(_CHANGED).alias("changed"),
        F.expr("greatest(0, unknown - greatest(0, present - ok))").alias("unknown_absent"),
        F.expr("failed > 0 AND ok + unknown = 0").alias("refused"),
    ).where(" OR ".join(f"{name} > 0" for name in CLASSES))


def _count(*kinds: RowKind) -> Column:
    return F.count_if(F.col("what").isin([kind.value for kind in kinds]))


_CHANGED = """
    CASE WHEN ok + unknown = 0 THEN 0
         WHEN never_sent > 0 THEN 1
         WHEN surplus > greatest(0, present - ok - unknown) THEN 1
         WHEN shortfall > greatest(0, ok - present) THEN 1
         ELSE 0 END
"""
"""1 where a copy has a value that was never sent, or where several sends have one identity and the
value of one is present instead of the value of another (such as the value of an unknown send
instead of that of an acknowledged one)."""
