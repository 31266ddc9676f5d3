"""Reads a topic and stores its records as Parquet: first the committed records, then all others.

The read is bounded by end offsets that were recorded before, so that a job may still write.
Columns: topic, partition, offset, timestamp_ms, key and value (text), committed (whether a
`read_committed` consumer reads the record), appended (whether the timestamp is the broker's append
time; else it is the producer's). Values of formats other than JSON become JSON, and are in the
column record too (`declared.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reading.format import Format
from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.promised_columns import KAFKA_LANE, KAFKA_POSITION
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, as_json
from streamquake.harness.reconcile.values.declared import stored_columns

TASKS_PER_CORE = 2
NO_STARTS: Mapping[int, int] = {}
_NO_VALUE = "_no_value"
POLL_LIMIT_MS = 60_000
"""How long Spark waits for a range of offsets before the read fails, in milliseconds."""


def read_topic(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    *,
    stable_ends: Mapping[int, int],
    ends: Mapping[int, int],
    into: StoredOutput,
    began_ms: int | None = None,
    starts: Mapping[int, int] = NO_STARTS,
    declared_format: Format | None = None,
) -> None:
    """Read a topic from its beginning, or from `starts`, up to its end offsets. `stable_ends` (the
    last stable offsets) bound the committed records, `ends` the others. `began_ms` is the time of
    the run's clock at zero, in epoch milliseconds; it relates timestamps to the history.
    `declared_format` is the format of the values, None for JSON. Raises pyspark's errors where
    Kafka is unreachable, BadInput for values whose schema `declared_format` lacks."""
    # An earlier transaction that is still open can keep the stable end before the start of the
    # read.
    stable_ends = {n: max(end, starts.get(n, 0)) for n, end in stable_ends.items()}
    committed = records(spark, bootstrap, topic, stable_ends, committed=True, starts=starts)
    _as_text(committed, declared_format).write.parquet(str(into.part("committed")))
    committed_rows = spark.read.parquet(literal_path(into.part("committed")))
    committed_count = committed_rows.count()
    uncommitted_count = 0
    # Without transactions every offset is a committed record.
    if committed_count != sum(end - starts.get(partition, 0) for partition, end in ends.items()):
        all_records = records(spark, bootstrap, topic, ends, committed=False, starts=starts)
        uncommitted = all_records.join(
            committed_rows.select("partition", "offset"), ["partition", "offset"], "anti"
        )
        _as_text(uncommitted, declared_format).select(*committed_rows.columns).write.parquet(
            str(into.part("uncommitted"))
        )
        uncommitted_count = spark.read.parquet(literal_path(into.part("uncommitted"))).count()
    into.finish(
        {
            "kind": "kafka",
            "topic": topic,
            "records": committed_count,
            "uncommitted": uncommitted_count,
            "stamped": _timestamp_source(committed_rows),
            "began_ms": began_ms,
            "ends": {str(partition): end for partition, end in ends.items()},
            "stable_ends": {str(partition): end for partition, end in stable_ends.items()},
            "starts": {str(partition): start for partition, start in starts.items()},
        }
    )


def records(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    ends: Mapping[int, int],
    *,
    committed: bool,
    starts: Mapping[int, int] = NO_STARTS,
) -> DataFrame:
    """The records of a topic from `starts`, or from the beginning, to before `ends`; `value` is in
    bytes."""
    tasks = max(len(ends), spark.sparkContext.defaultParallelism * TASKS_PER_CORE)
    first = {str(partition): starts.get(partition, EARLIEST) for partition in ends}
    last = {str(partition): end for partition, end in ends.items()}
    raw = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("assign", json.dumps({topic: sorted(ends)}))
        .option("startingOffsets", json.dumps({topic: first}))
        .option("endingOffsets", json.dumps({topic: last}))
        .option("kafka.isolation.level", "read_committed" if committed else "read_uncommitted")
        .option("kafkaConsumer.pollTimeoutMs", POLL_LIMIT_MS)
        .option("minPartitions", tasks)
        .load()
    )
    return raw.select(
        "topic",
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("timestamp_ms"),
        F.col("key").cast("string").alias("key"),
        "value",
        F.lit(committed).alias("committed"),
        (F.col("timestampType") == LOG_APPEND_TIME).alias("appended"),
    )


def _as_text(records: DataFrame, format_: Format | None) -> DataFrame:
    """The records with their values as JSON. A malformed value becomes text that is no JSON; a
    missing value stays null."""
    if format_ is None:
        return records.withColumn("value", F.col("value").cast("string"))
    columns = [name for name in records.columns if name != "value"]
    place = tuple(f"_{name}" for name in columns)  # a field may be called `key`
    deleted = F.isnull("value").alias(_NO_VALUE)
    raw = records.select("value", deleted, *map(_rename, columns, place))
    table = format_.values(
        raw, (*place, _NO_VALUE), frozenset(), lane=KAFKA_LANE, position=KAFKA_POSITION
    )
    readable = ~F.col(MALFORMED) & ~F.col(_NO_VALUE)
    value = F.when(F.col(MALFORMED), F.col(RAW)).when(readable, as_json(table))
    return table.frame.select(
        *map(_rename, place, columns), *stored_columns(table, value, readable)
    )


def _rename(old: str, new: str) -> Column:
    return F.col(old).alias(new)


def _timestamp_source(records: DataFrame) -> str | None:
    """The source of the records' timestamps: `append` (the broker), `create` (the producer) or
    `mixed`; None without records."""
    kinds = {row.appended for row in records.select("appended").distinct().collect()}
    if len(kinds) != 1:
        return "mixed" if kinds else None
    return "append" if kinds.pop() else "create"


LOG_APPEND_TIME = 1
"""Kafka's number for append time (org.apache.kafka.common.record.TimestampType)."""
EARLIEST = -2
"""Spark's number for the first available offset."""
