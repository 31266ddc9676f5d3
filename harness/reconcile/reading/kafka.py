"""Reads topics as frames with Spark's own source, for data sets of any size."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.cluster.engines.kafka.connection import KafkaConnection

TASKS_PER_CORE = 2
POLL_LIMIT_MS = 60_000
"""How long Spark waits for a range of offsets before the read fails, in milliseconds."""


def records(
    spark: SparkSession,
    brokers: KafkaConnection,
    topic: str,
    ends: Mapping[int, int],
    *,
    committed: bool,
) -> DataFrame:
    """The records of a topic from the beginning to before `ends`: topic, partition, offset,
    timestamp_ms, key (text) and value (bytes). With `committed` only those that a `read_committed`
    consumer reads."""
    tasks = max(len(ends), spark.sparkContext.defaultParallelism * TASKS_PER_CORE)
    last = {str(partition): end for partition, end in ends.items()}
    raw = (
        spark.read.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in brokers.java_settings().items()})
        .option("assign", json.dumps({topic: sorted(ends)}))
        .option("startingOffsets", "earliest")
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
    )
