"""`kafka://broker[:port]/topic[?isolation=...]`: values of topics, up to recorded ends.

As a reader of committed records sees them, up to the last stable offsets of the moment the reading
began, so that a job that still writes is no problem; with `isolation=read_uncommitted` up to the
ends themselves, with what open and aborted transactions hold. Beside the fields there are `_key`,
`_partition`, `_offset` and `_timestamp_ms`, and `_topic` where a side is of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qsl, urlsplit

from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.harness.reconcile.reading.source import ReadRequest, Source, sources
from streamquake.topologies.problems import BadInput, Problem, bad_input, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamquake.harness.reconcile.reading.table import Table

DEFAULT_PORT = 9092
ISOLATION = "isolation"
NO_VALUE = "__no_value"
LEVELS = {"read_committed": True, "read_uncommitted": False}
"""As Kafka's consumers call them; whether only committed records are seen."""


@dataclass(frozen=True, kw_only=True)
class Topic:
    """One topic, and as what reader it is read."""

    uri: str
    brokers: str
    name: str
    committed: bool


@dataclass(frozen=True, kw_only=True)
class TopicEnds:
    """Where a topic's reading ends, and how many offsets no reader of committed records sees."""

    topic: Topic
    ends: dict[int, int]
    held_back: int


@sources.register
class KafkaTopics(Source):
    """One topic, or several of one cluster."""

    name: ClassVar[str] = "kafka"
    needs_jars: ClassVar[bool] = True
    keyed: ClassVar[bool] = True

    def __init__(self, uris: Sequence[str]) -> None:
        super().__init__(uris)
        self.topics = tuple(map(topic_of, uris))
        self._looked: tuple[TopicEnds, ...] = ()
        self._reject_mixtures()

    def inspect(self) -> int | None:
        self._looked = tuple(map(_inspect, self.topics))
        return None

    def read(self, spark: SparkSession, asked: ReadRequest) -> Table:
        from dataclasses import replace

        from pyspark.sql import DataFrame

        from streamquake.harness.reconcile.reading.format import formats, not_in_topics
        from streamquake.harness.reconcile.reading.promised_columns import (
            KAFKA_LANE,
            KAFKA_POSITION,
        )

        kind = formats[asked.format or "json"]
        if why := not_in_topics(kind):
            raise bad_input(self.uris[0], why)
        for each in self._looked:
            asked.show_message(f"{each.topic.uri}: up to {sum(each.ends.values()):,} offsets")
        # Offsets say nothing of the order between topics, so what is one is known of each record.
        apart = ("_topic",) if len(self.topics) > 1 else ()
        place = (*apart, "_key", "_partition", "_offset", "_timestamp_ms")
        read = [_records(spark, each, place) for each in self._looked]
        table = kind(asked.schema).values(
            reduce(DataFrame.unionByName, read),
            (*place, NO_VALUE),
            asked.names,
            lane=(*apart, *KAFKA_LANE),
            position=KAFKA_POSITION,
        )
        about = sum(sum(each.ends.values()) for each in self._looked)
        hidden = (each for each in self._looked if each.topic.committed and each.held_back)
        notes = tuple(map(_held_back_note, hidden))
        return replace(
            table, place=place, notes=notes, about=about, partition=KAFKA_LANE[0], deletes=NO_VALUE
        )

    def _reject_mixtures(self) -> None:
        """Raises BadInput for topics whose records could not be told apart."""
        first, *others = self.topics
        names = {first.name}
        for topic in others:
            if topic.brokers != first.brokers:
                message = f"the topics of one side are of one cluster; {first.uri} names another"
                raise bad_input(topic.uri, message)
            if topic.name in names:
                raise bad_input(topic.uri, f"the side has the topic {topic.name} already")
            names.add(topic.name)


def topic_of(uri: str) -> Topic:
    """The topic of a URI; several brokers may be named, with commas. Raises BadInput."""
    parts = urlsplit(uri)
    brokers, name = parts.netloc.split(","), parts.path.strip("/")
    if not all(brokers) or not name or "/" in name:
        raise bad_input(uri, "expected kafka://broker[:port]/topic")
    with_port = (broker if ":" in broker else f"{broker}:{DEFAULT_PORT}" for broker in brokers)
    requested = dict(parse_qsl(parts.query, keep_blank_values=True))
    level = requested.pop(ISOLATION, "read_committed")
    if requested or parts.fragment or level not in LEVELS:
        raise bad_input(uri, f"behind the topic only ?{ISOLATION}={'|'.join(LEVELS)} may stand")
    return Topic(uri=uri, brokers=",".join(with_port), name=name, committed=LEVELS[level])


def _inspect(topic: Topic) -> TopicEnds:
    """Raises BadInput for a topic that is not there, ConnectionError for brokers that do not
    answer."""
    try:
        known = kafka_admin.topics_at(topic.brokers)
        if topic.name not in known:
            message = f'no topic is called "{topic.name}"{did_you_mean(topic.name, known)}'
            raise BadInput([Problem(file=topic.uri, message=message)])
        stable = kafka_admin.ends_at(topic.brokers, topic.name, committed=True)
        ends = kafka_admin.ends_at(topic.brokers, topic.name, committed=False)
    except kafka_admin.KafkaUnreachable as error:
        raise ConnectionError(f"{topic.uri}: {error}; do the brokers run?") from error
    held_back = sum(ends.values()) - sum(stable.values())
    return TopicEnds(topic=topic, ends=stable if topic.committed else ends, held_back=held_back)


def _records(spark: SparkSession, checked: TopicEnds, place: Sequence[str]) -> DataFrame:
    """`value`, in bytes, whether it is `NO_VALUE`, and the place of each record."""
    from pyspark.sql import functions as F

    from streamquake.harness.reconcile.reading.kafka import records

    topic = checked.topic
    raw = records(spark, topic.brokers, topic.name, checked.ends, committed=topic.committed)
    around = (F.col(name[1:]).alias(name) for name in place)
    return raw.select("value", F.isnull("value").alias(NO_VALUE), *around)


def _held_back_note(checked: TopicEnds) -> str:
    message = f"{checked.held_back} offsets stand behind a transaction that is still open"
    return f"{checked.topic.uri}: {message}; records among them may yet come"
