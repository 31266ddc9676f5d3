"""A topic without a broker, for the formats of its values."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.harness.reconcile.sources import kafka

TOPIC = "kafka://b/t"
COLUMNS = "partition int, offset bigint, timestamp_ms bigint, key string, value binary"


def stub_topic(
    patch: pytest.MonkeyPatch, values: Sequence[bytes | None], *, partitions: int = 1
) -> str:
    """The URI of a topic with these values, assigned to its partitions in turn."""
    rows = [(at % partitions, at // partitions, 0, None, value) for at, value in enumerate(values)]

    def records(session: SparkSession, *_: object, committed: bool) -> DataFrame:
        return session.createDataFrame(rows, COLUMNS)

    patch.setattr(kafka, "records", records)
    patch.setattr(kafka_admin, "topics_at", lambda brokers: ("t",))
    patch.setattr(kafka_admin, "ends_at", lambda *_, committed: {0: len(rows)})
    return TOPIC
