"""The reconciliation of two folders of Parquet files by one engine, in a separate process.

    python -m tests.benchmarks.reconcile_arms ENGINE EXPECTED ACTUAL RECORDS

prints as JSON the counts, and the seconds of the engine's start and of two comparisons in the same
process. A record's identity is (key, seq), and its checksum is compared; every engine has two
threads. Each other engine runs the plan that is cheapest for it.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Counts = Mapping[str, int]
Arm = Callable[[str, str], Counts]
CLASSES = ("lost", "duplicated", "phantom", "changed")
THREADS = 2
MEMORY_MB = 4096
SMALL = 2_000_000
"""Up to this number of records Spark is faster with only the C1 compiler."""
BUCKETS = 65_536


def streamquake_reconcile(records: int) -> Arm:
    """`streamquake reconcile`: a digest, then a row diff."""
    from streamquake.harness.reconcile.compare import compare
    from streamquake.harness.reconcile.comparison import ComparisonRequest, Side
    from streamquake.harness.reconcile.reading.source import source_of

    spark = _spark(records)

    def arm(expected_folder: str, actual_folder: str) -> Counts:
        sides = [
            Side(name=name, uris=(uri,), key="key", sequence="seq", compare="checksum")
            for name, uri in (("expected", expected_folder), ("actual", actual_folder))
        ]
        expected, actual = (source_of(side.uris, f"--{side.name}") for side in sides)
        expected.inspect()
        actual.inspect()
        request = ComparisonRequest(expected=sides[0], actual=sides[1])
        counts = compare(spark, request, expected, actual, lambda line: None).counts
        return {name: counts[name] or 0 for name in CLASSES}

    return arm


def four_queries(records: int) -> Arm:
    """Two anti joins, a join and a grouping in Spark, with its defaults."""
    from pyspark.sql import functions as F

    spark = _spark(records)

    def arm(expected_folder: str, actual_folder: str) -> Counts:
        expected, actual = spark.read.parquet(expected_folder), spark.read.parquet(actual_folder)
        both = expected.alias("e").join(actual.alias("a"), ["key", "seq"])
        copies = actual.groupBy("key", "seq").count().where("count > 1")
        extra = copies.agg(F.coalesce(F.sum(F.col("count") - 1), F.lit(0))).first()
        assert extra is not None
        differing = both.where("e.checksum <> a.checksum").select("key", "seq")
        return {
            "lost": expected.join(actual, ["key", "seq"], "left_anti").count(),
            "duplicated": extra[0],
            "phantom": actual.join(expected, ["key", "seq"], "left_anti").count(),
            "changed": differing.distinct().count(),
        }

    return arm


def _spark(records: int) -> Any:
    """A session that is stopped at exit, since only then the process's CPU time includes its
    work."""
    from streamquake.harness.reconcile.spark_session import spark_session, stop_spark

    spark = spark_session(f"local[{THREADS}]", small=records <= SMALL, memory_mb=MEMORY_MB)
    atexit.register(stop_spark, spark)
    return spark


ACCOUNT = """
    SELECT sum(CASE WHEN expected > actual THEN expected - actual ELSE 0 END) AS lost,
           sum(CASE WHEN expected > 0 AND actual > expected THEN actual - expected ELSE 0 END)
             AS duplicated,
           sum(CASE WHEN expected = 0 THEN actual ELSE 0 END) AS phantom,
           sum(CASE WHEN expected > 0 AND unexpected > 0 THEN 1 ELSE 0 END) AS changed
    FROM (SELECT key, seq, sum(expected) AS expected, sum(actual) AS actual,
                 sum(CASE WHEN expected = 0 THEN actual ELSE 0 END) AS unexpected
          FROM (SELECT key, seq, checksum, sum(expected) AS expected, sum(actual) AS actual
                FROM {rows} GROUP BY key, seq, checksum)
          GROUP BY key, seq)
"""
"""One pass over both sides, in SQL that both DuckDB and Polars support."""


def duckdb(records: int) -> Arm:
    """DuckDB, in one pass."""
    return _duckdb(lambda db: ACCOUNT.format(rows="both_sides"))


def duckdb_digest(records: int) -> Arm:
    """DuckDB, with a digest first and then only the buckets that differ, like Streamquake."""

    def query(db: Any) -> str:
        dirty = db.execute(
            f"""SELECT bucket FROM (
                SELECT hash(key, seq) & {BUCKETS - 1} AS bucket, sum(expected - actual) AS count,
                       sum((expected - actual) * (hash(key, seq, checksum) >> 24)::BIGINT) AS sum,
                       bit_xor(hash(key, seq, checksum)) AS xor
                FROM both_sides GROUP BY bucket) WHERE count != 0 OR sum != 0 OR xor != 0"""
        ).fetchall()
        buckets = ", ".join(str(bucket) for (bucket,) in dirty) or "-1"
        rows = f"(SELECT * FROM both_sides WHERE hash(key, seq) & {BUCKETS - 1} IN ({buckets}))"
        return ACCOUNT.format(rows=rows)

    return _duckdb(query)


def _duckdb(query: Callable[[Any], str]) -> Arm:
    import duckdb as engine

    def arm(expected_folder: str, actual_folder: str) -> Counts:
        db = engine.connect(config={"threads": THREADS})
        db.execute(
            f"""CREATE VIEW both_sides AS
                SELECT key, seq, checksum, 1 AS expected, 0 AS actual
                FROM '{expected_folder}/*.parquet' UNION ALL
                SELECT key, seq, checksum, 0, 1 FROM '{actual_folder}/*.parquet'"""
        )
        (row,) = db.execute(query(db)).fetchall()
        return {name: int(count or 0) for name, count in zip(CLASSES, row, strict=True)}

    return arm


def polars(records: int) -> Arm:
    """Polars, in one pass of its streaming engine."""
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import polars as engine

    def arm(expected_folder: str, actual_folder: str) -> Counts:
        sides = [
            engine.scan_parquet(f"{folder}/*.parquet")
            .select("key", "seq", "checksum")
            .with_columns(expected=engine.lit(1 - change), actual=engine.lit(change))
            for change, folder in enumerate((expected_folder, actual_folder))
        ]
        context = engine.SQLContext(both_sides=engine.concat(sides))
        totals = context.execute(ACCOUNT.format(rows="both_sides")).collect(engine="streaming")
        return {name: int(totals[name][0] or 0) for name in CLASSES}

    return arm


def python_counter(records: int) -> Arm:
    """A counter of all records in Python, as in the test suites of brokers."""
    import pyarrow.parquet

    def rows(folder: str) -> Any:
        for path in sorted(Path(folder).glob("*.parquet")):
            for batch in pyarrow.parquet.ParquetFile(path).iter_batches():
                columns = (batch.column(name).to_pylist() for name in ("key", "seq", "checksum"))
                yield from zip(*columns, strict=True)

    def arm(expected_folder: str, actual_folder: str) -> Counts:
        expected = {(key, seq): checksum for key, seq, checksum in rows(expected_folder)}
        copies: Counter[tuple[Any, Any]] = Counter()
        changed = set()
        for key, seq, checksum in rows(actual_folder):
            copies[key, seq] += 1
            if expected.get((key, seq), checksum) != checksum:
                changed.add((key, seq))
        return {
            "lost": sum(identity not in copies for identity in expected),
            "duplicated": sum(
                count - 1 for identity, count in copies.items() if identity in expected
            ),
            "phantom": sum(count for identity, count in copies.items() if identity not in expected),
            "changed": len(changed),
        }

    return arm


ARMS: Mapping[str, Callable[[int], Arm]] = {
    "streamquake": streamquake_reconcile,
    "spark, four queries": four_queries,
    "duckdb": duckdb,
    "duckdb, digest": duckdb_digest,
    "polars": polars,
    "python set": python_counter,
}


def main() -> None:
    name, expected_folder, actual_folder, records = sys.argv[1:]
    began = time.perf_counter()
    arm = ARMS[name](int(records))
    ready = time.perf_counter()
    counts = dict(arm(expected_folder, actual_folder))
    first = time.perf_counter()
    arm(expected_folder, actual_folder)
    times = {
        "start_s": ready - began,
        "first_s": first - ready,
        "second_s": time.perf_counter() - first,
    }
    print(json.dumps({"counts": counts, **times}))


if __name__ == "__main__":
    main()
