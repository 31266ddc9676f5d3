"""Reads a Kafka topic as a stream."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession


def from_kafka(spark: SparkSession, *, bootstrap: str, topic: str) -> DataFrame:
    """The records of a topic from its beginning, `key` and `value` as text."""
    source = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    records = spark.readStream.format("kafka").options(**source).load()
    return records.selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value")
