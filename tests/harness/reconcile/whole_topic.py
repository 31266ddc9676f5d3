"""Reads a topic at once, and stores it."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.harness.reconcile.reading.format import Format
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.reading.stored_topic import TopicRead
from streamquake.harness.reconcile.reading.topic_records import NO_STARTS


def read_topic(
    spark: SparkSession | None,
    brokers: str,
    topic: str,
    *,
    stable_ends: Mapping[int, int],
    ends: Mapping[int, int],
    into: StoredOutput,
    began_ms: int | None = None,
    starts: Mapping[int, int] = NO_STARTS,
    declared_format: Format | None = None,
) -> None:
    """Read a topic from its beginning, or from `starts`, up to its ends."""
    connection = KafkaConnection(brokers)
    read = TopicRead(connection, topic, into=into, starts=starts, declared_format=declared_format)
    read.read_until(spark, stable_ends, ends)
    read.finish(began_ms)
