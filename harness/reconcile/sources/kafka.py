"""`kafka://broker[:port]/topic[?isolation=...]`: values of topics, up to recorded end offsets.

By default only committed records are read, up to the last stable offsets at the start of the read,
so that a job may still write. With `isolation=read_uncommitted` all records are read up to the end
offsets, also those of open and aborted transactions. Beside the fields of the value there are the
columns `_key`, `_partition`, `_offset` and `_timestamp_ms`, and `_topic` where a side has several
topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar
from urllib.parse import parse_qsl, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.harness.reconcile.reading.format import formats, not_in_topics
from streamquake.harness.reconcile.reading.kafka import records
from streamquake.harness.reconcile.reading.promised_columns import (
    KAFKA_LANE,
    KAFKA_POSITION,
)
from streamquake.harness.reconcile.reading.source import NO_PROPERTIES, ReadRequest, Source, sources
from streamquake.harness.reconcile.reading.table import Table
from streamquake.topologies.problems import BadInput, Problem, bad_input, did_you_mean
from streamquake.topologies.secret_names import without_login

DEFAULT_PORT = 9092
ISOLATION = "isolation"
NO_VALUE = "__no_value"
LEVELS = {"read_committed": True, "read_uncommitted": False}
"""Isolation level of Kafka's consumers -> whether only committed records are read."""


@dataclass(frozen=True, kw_only=True)
class Topic:
    """One topic, and whether only its committed records are read."""

    uri: str
    brokers: KafkaConnection
    name: str
    committed_only: bool


@dataclass(frozen=True, kw_only=True)
class TopicEnds:
    """The end offsets of the read by partition, and the number of offsets behind the last stable
    ones."""

    topic: Topic
    ends: dict[int, int]
    offsets_held_back: int


@sources.register
class KafkaTopics(Source):
    """One topic, or several of one cluster."""

    name: ClassVar[str] = "kafka"
    needs_jars: ClassVar[bool] = True
    takes_properties: ClassVar[bool] = True
    has_keys: ClassVar[bool] = True

    def __init__(self, uris: Sequence[str], properties: Mapping[str, str] = NO_PROPERTIES) -> None:
        super().__init__(uris, properties)
        self.topics = tuple(topic_of(uri, properties) for uri in uris)
        self._inspected: tuple[TopicEnds, ...] = ()
        self._reject_mixtures()

    def inspect(self) -> int | None:
        self._inspected = tuple(map(_inspect, self.topics))
        return None

    def read(self, spark: SparkSession, request: ReadRequest) -> Table:

        kind = formats[request.format or "json"]
        if why := not_in_topics(kind):
            raise bad_input(self.uris[0], why)
        for topic_ends in self._inspected:
            request.show_message(
                f"{topic_ends.topic.uri}: up to {sum(topic_ends.ends.values()):,} offsets"
            )
        # Offsets give no order between topics, so each topic is a lane of its own.
        topic_column = ("_topic",) if len(self.topics) > 1 else ()
        place = (*topic_column, "_key", "_partition", "_offset", "_timestamp_ms")
        frames = [_records(spark, topic_ends, place) for topic_ends in self._inspected]
        table = kind(request.schema).values(
            reduce(DataFrame.unionByName, frames),
            (*place, NO_VALUE),
            request.names,
            lane=(*topic_column, *KAFKA_LANE),
            position=KAFKA_POSITION,
        )
        record_estimate = sum(sum(topic_ends.ends.values()) for topic_ends in self._inspected)
        hidden = (
            topic_ends
            for topic_ends in self._inspected
            if topic_ends.topic.committed_only and topic_ends.offsets_held_back
        )
        notes = tuple(map(_held_back_note, hidden))
        return replace(
            table,
            place=place,
            notes=notes,
            record_estimate=record_estimate,
            partition=KAFKA_LANE[0],
            deletes=NO_VALUE,
        )

    def _reject_mixtures(self) -> None:
        """Raises BadInput for topics of different clusters, and for a topic that is named twice."""
        first, *others = self.topics
        names = {first.name}
        for topic in others:
            if topic.brokers != first.brokers:
                message = (
                    f"the topics of one side must be of one cluster; {first.uri} names another"
                )
                raise bad_input(topic.uri, message)
            if topic.name in names:
                raise bad_input(topic.uri, f"the side has the topic {topic.name} already")
            names.add(topic.name)


def topic_of(uri: str, properties: Mapping[str, str] = NO_PROPERTIES) -> Topic:
    """The topic of a URI, which may name several brokers with commas; `properties` are those of its
    clients. Raises BadInput."""
    parts, place = urlsplit(uri), without_login(uri)
    if "@" in parts.netloc:
        raise bad_input(
            place, "an address takes no login; give it as `properties` of a mapping file"
        )
    brokers, name = parts.netloc.split(","), parts.path.strip("/")
    if not all(brokers) or not name or "/" in name:
        raise bad_input(place, "expected kafka://broker[:port]/topic")
    with_port = (broker if ":" in broker else f"{broker}:{DEFAULT_PORT}" for broker in brokers)
    requested = dict(parse_qsl(parts.query, keep_blank_values=True))
    level = requested.pop(ISOLATION, "read_committed")
    if requested or parts.fragment or level not in LEVELS:
        raise bad_input(place, f"after the topic only ?{ISOLATION}={'|'.join(LEVELS)} is allowed")
    connection = KafkaConnection.of(",".join(with_port), properties)
    return Topic(uri=uri, brokers=connection, name=name, committed_only=LEVELS[level])


def _inspect(topic: Topic) -> TopicEnds:
    """The end offsets of a topic. Raises BadInput for a topic that does not exist, ConnectionError
    for unreachable brokers."""
    try:
        known = kafka_admin.topics_at(topic.brokers)
        if topic.name not in known:
            message = f'no topic is called "{topic.name}"{did_you_mean(topic.name, known)}'
            raise BadInput([Problem(file=topic.uri, message=message)])
        stable = kafka_admin.ends_at(topic.brokers, topic.name, committed=True)
        ends = kafka_admin.ends_at(topic.brokers, topic.name, committed=False)
    except kafka_admin.KafkaUnreachable as error:
        raise ConnectionError(f"{topic.uri}: {error}; do the brokers run?") from error
    offsets_held_back = sum(ends.values()) - sum(stable.values())
    return TopicEnds(
        topic=topic,
        ends=stable if topic.committed_only else ends,
        offsets_held_back=offsets_held_back,
    )


def _records(spark: SparkSession, topic_ends: TopicEnds, place: Sequence[str]) -> DataFrame:
    """The `value` of each record in bytes, `NO_VALUE` (whether it has none), and its place."""

    topic = topic_ends.topic
    raw = records(spark, topic.brokers, topic.name, topic_ends.ends, committed=topic.committed_only)
    columns = (F.col(name[1:]).alias(name) for name in place)
    return raw.select("value", F.isnull("value").alias(NO_VALUE), *columns)


def _held_back_note(topic_ends: TopicEnds) -> str:
    message = (
        f"{topic_ends.offsets_held_back} offsets are held back by a transaction that is still open"
    )
    return f"{topic_ends.topic.uri}: {message}; their records may become readable later"
