"""Rows a second of the reconciliation, beside the four joins one would write first.

    python -m tests.benchmarks.bench_reconcile [RECORDS]

Both read the same Parquet files in the same warm session and must give the same counts; the arms
are interleaved. Rows count both sides. Session start is told apart.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reconcile import reconcile
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.spark import spark_session, stop_spark
from streamquake.harness.workloads.numbered import Numbered
from streamquake.harness.workloads.numbered.frame import frame
from streamquake.harness.workloads.numbered.ranges import Range, Status

ROUNDS = 3
PLANTED = 100
"""Records that are lost, duplicated and changed, each."""
SHAPE = Shape(identity=("key", "seq"), compare=("checksum",))
CLASSES = ("lost", "duplicated", "phantom", "changed")
Counts = Mapping[str, int | None]


def ours(expected: DataFrame, actual: DataFrame, records: int) -> Counts:
    counts = reconcile(expected, actual, SHAPE, about=records).counts
    return {name: counts[name] for name in CLASSES}


def four_queries(expected: DataFrame, actual: DataFrame, records: int) -> Counts:
    """Two anti joins, a join and a grouping, with Spark's defaults."""
    identity = list(SHAPE.identity)
    both = expected.alias("e").join(actual.alias("a"), identity)
    copies = actual.groupBy(*identity).count().where("count > 1")
    duplicated = copies.agg(F.coalesce(F.sum(F.col("count") - 1), F.lit(0))).first()
    assert duplicated is not None
    return {
        "lost": expected.join(actual, identity, "left_anti").count(),
        "duplicated": duplicated[0],
        "phantom": actual.join(expected, identity, "left_anti").count(),
        "changed": both.where("e.checksum <> a.checksum").select(*identity).distinct().count(),
    }


ARMS: Mapping[str, Callable[[DataFrame, DataFrame, int], Counts]] = {
    "digest then drill": ours,
    "four queries": four_queries,
}


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    began = time.perf_counter()
    spark = spark_session(small=records <= 2_000_000)
    print(f"session start {time.perf_counter() - began:.1f} s")
    with tempfile.TemporaryDirectory(prefix="streamquake-bench-") as folder:
        clean, broken = _data(spark, Path(folder), records)
        _compare("clean", clean, records, dict.fromkeys(CLASSES, 0))
        planted = dict.fromkeys(CLASSES, PLANTED) | {"phantom": 0}
        _compare("300 anomalies", broken, records, planted)
    stop_spark(spark)


def _data(
    spark: SparkSession, folder: Path, records: int
) -> tuple[tuple[DataFrame, DataFrame], tuple[DataFrame, DataFrame]]:
    """(expected, actual) without and with anomalies, written as Parquet."""
    recipe = Numbered(records=records, rate_per_s=10_000).recipe(seed=1)
    sent = frame(spark, recipe, [Range(0, records - 1, Status.ACKNOWLEDGED)])
    sent.drop("status").write.parquet(f"{folder}/sent")
    expected = spark.read.parquet(f"{folder}/sent")
    step = records // PLANTED
    kept = expected.where(F.col("index") % step != 0)
    odd = F.when(F.col("index") % step == 2, F.col("checksum") + 1).otherwise(F.col("checksum"))
    copies = expected.where(F.col("index") % step == 1)
    kept.withColumn("checksum", odd).unionByName(copies).write.parquet(f"{folder}/seen")
    return (expected, expected), (expected, spark.read.parquet(f"{folder}/seen"))


def _compare(title: str, sides: tuple[DataFrame, DataFrame], records: int, truth: Counts) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in ARMS}
    for _ in range(ROUNDS + 1):
        for name, arm in ARMS.items():
            seconds[name].append(_timed(name, partial(arm, *sides, records), truth))
    for name, (cold, *warm) in seconds.items():
        rate = 2 * records / statistics.median(warm)
        print(f"{title:14} {name:18} {rate:12,.0f} rows/s warm, "
              f"{statistics.median(warm):.2f} s (first {cold:.2f} s)")  # fmt: skip
    pairs = zip(seconds["four queries"][1:], seconds["digest then drill"][1:], strict=True)
    ratio = statistics.median(slow / fast for slow, fast in pairs)
    print(f"{title:14} {ratio:.1f} times faster (load average {os.getloadavg()[0]:.1f})")


def _timed(name: str, arm: Callable[[], Counts], truth: Counts) -> float:
    began = time.perf_counter()
    counts = arm()
    spent = time.perf_counter() - began
    if dict(counts) != dict(truth):
        raise RuntimeError(f"{name} counted {counts}, planted were {truth}")
    return spent


if __name__ == "__main__":
    main()
