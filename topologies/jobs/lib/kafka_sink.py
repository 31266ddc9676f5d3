"""Writes the rows of a query to Kafka, with the guarantee that an experiment requires."""

from __future__ import annotations

from kafka_transactions import KafkaTransactions
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter


def to_kafka(
    rows: DataFrame, *, bootstrap: str, topic: str, name: str, guarantee: str, timeout_ms: str
) -> DataStreamWriter:
    """A writer of rows with the columns `key` and `value`. Spark's own sink writes the rows of a
    repeated batch again; `exactly-once` uses transactions instead."""
    if guarantee != "exactly-once":
        plain = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
        return rows.writeStream.format("kafka").options(**plain)
    sink = KafkaTransactions(bootstrap, topic, name, int(timeout_ms))
    return rows.writeStream.foreachBatch(sink)
