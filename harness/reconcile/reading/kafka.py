"""Reading a topic into Parquet, once as a reader of committed records and once as any reader.

Bounded by end offsets that were recorded before, so that a job that still writes is no problem.
Columns: topic, partition, offset, timestamp_ms, key and value (text), committed (whether a reader
of committed records sees it), appended (whether the broker stamped it when it appended it; else the
stamp is its producer's). Values of another format than JSON become JSON, and stand in record too,
as `declared.py` has it.
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
"""How long Spark waits for a range that does not come, before the reading fails."""


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
    reported: Format | None = None,
) -> None:
    """Read a topic up to its ends: `stable_ends` bound the committed reading (the last stable
    offsets), `ends` the other; from its beginning, or where `starts` says. `began_ms` is when the
    run's clock stood at zero, epoch milliseconds: with it, stamps can be set beside the history.
    `told` is the format of the values where they are not JSON. Raises pyspark's errors when Kafka
    does not answer, BadInput for values that `told` says nothing of."""
    # A transaction that was open before holds the stable end back behind where the reading begins.
    stable_ends = {n: max(end, starts.get(n, 0)) for n, end in stable_ends.items()}
    committed = records(spark, bootstrap, topic, stable_ends, committed=True, starts=starts)
    _as_text(committed, reported).write.parquet(str(into.part("committed")))
    seen = spark.read.parquet(literal_path(into.part("committed")))
    visible = seen.count()
    hidden = 0
    # Without transactions every offset holds a record that all readers see.
    if visible != sum(end - starts.get(partition, 0) for partition, end in ends.items()):
        everything = records(spark, bootstrap, topic, ends, committed=False, starts=starts)
        others = everything.join(
            seen.select("partition", "offset"), ["partition", "offset"], "anti"
        )
        _as_text(others, reported).select(*seen.columns).write.parquet(
            str(into.part("uncommitted"))
        )
        hidden = spark.read.parquet(literal_path(into.part("uncommitted"))).count()
    into.finish(
        {
            "kind": "kafka",
            "topic": topic,
            "records": visible,
            "uncommitted": hidden,
            "stamped": _stamped(seen),
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
    """The records of a topic from `starts`, else from the beginning, to before `ends`; `value` is
    bytes still."""
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


def _as_text(records: DataFrame, recorded: Format | None) -> DataFrame:
    """With values as JSON; those that cannot be read become a text that is none, and no value is
    none."""
    if recorded is None:
        return records.withColumn("value", F.col("value").cast("string"))
    around = [name for name in records.columns if name != "value"]
    place = tuple(f"_{name}" for name in around)  # a field may be called `key`
    deleted = F.isnull("value").alias(_NO_VALUE)
    raw = records.select("value", deleted, *map(_renamed, around, place))
    table = recorded.values(
        raw, (*place, _NO_VALUE), frozenset(), lane=KAFKA_LANE, position=KAFKA_POSITION
    )
    there = ~F.col(MALFORMED) & ~F.col(_NO_VALUE)
    value = F.when(F.col(MALFORMED), F.col(RAW)).when(there, as_json(table))
    return table.frame.select(*map(_renamed, place, around), *stored_columns(table, value, there))


def _renamed(old: str, new: str) -> Column:
    return F.col(old).alias(new)


def _stamped(seen: DataFrame) -> str | None:
    """What the stamps of the records are, by what Kafka says of each: the moment of `append`, what
    the producer said (`create`), or `mixed`; None without records."""
    kinds = {row.appended for row in seen.select("appended").distinct().collect()}
    if len(kinds) != 1:
        return "mixed" if kinds else None
    return "append" if kinds.pop() else "create"


LOG_APPEND_TIME = 1
"""Kafka's number for it (org.apache.kafka.common.record.TimestampType)."""
EARLIEST = -2
"""Spark's number for the first offset there is."""
