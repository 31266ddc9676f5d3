"""`kafka://broker[:port]/topic`: values as a reader of committed records sees them.

Read up to the last stable offsets of the moment the reading began, so that a job that still writes
is no problem. Beside the fields there are `_key`, `_partition`, `_offset` and `_timestamp_ms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from streamquake.cluster.engines import kafka_admin
from streamquake.harness.reconcile.source import Asked, Source, sources
from streamquake.topologies.problems import BadInput, Problem, bad_input, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamquake.harness.reconcile.table import Table

DEFAULT_PORT = 9092


@sources.register
class KafkaTopic(Source):
    """A topic."""

    name: ClassVar[str] = "kafka"
    takes_many: ClassVar[bool] = False
    needs_jars: ClassVar[bool] = True

    def __init__(self, uris: Sequence[str]) -> None:
        super().__init__(uris)
        self.brokers, self.topic = address(uris[0])
        self._stable: dict[int, int] = {}
        self._held_back = 0

    def look(self) -> int | None:
        try:
            known = kafka_admin.topics_at(self.brokers)
            if self.topic not in known:
                message = f'no topic is called "{self.topic}"{did_you_mean(self.topic, known)}'
                raise BadInput([Problem(file=self.uris[0], message=message)])
            self._stable = kafka_admin.ends_at(self.brokers, self.topic, committed=True)
            ends = kafka_admin.ends_at(self.brokers, self.topic, committed=False)
        except kafka_admin.KafkaUnanswered as error:
            raise ConnectionError(f"{self.uris[0]}: {error}; do the brokers run?") from error
        self._held_back = sum(ends.values()) - sum(self._stable.values())
        return None

    def read(self, spark: SparkSession, asked: Asked) -> Table:
        from dataclasses import replace

        from pyspark.sql import functions as F

        from streamquake.harness.reconcile.format import formats, not_in_topics
        from streamquake.harness.reconcile.kafka import records

        kind = formats[asked.format or "json"]
        if why := not_in_topics(kind):
            raise bad_input(self.uris[0], why)
        asked.say(f"{self.uris[0]}: up to {sum(self._stable.values()):,} offsets")
        raw = records(spark, self.brokers, self.topic, self._stable, committed=True)
        place = ("_key", "_partition", "_offset", "_timestamp_ms")
        raw = raw.select("value", *(F.col(name[1:]).alias(name) for name in place))
        lane = ("_partition",)
        values = kind(asked.schema).values
        table = values(raw, place, asked.names, lane=lane, position="_offset")
        return replace(table, notes=self._notes(), about=sum(self._stable.values()))

    def _notes(self) -> tuple[str, ...]:
        if not self._held_back:
            return ()
        said = f"{self._held_back} offsets stand behind a transaction that is still open"
        return (f"{self.uris[0]}: {said}; records among them may yet come",)


def address(uri: str) -> tuple[str, str]:
    """(brokers, topic) of a URI; several brokers may be named, with commas. Raises BadInput."""
    parts = urlsplit(uri)
    brokers, topic = parts.netloc.split(","), parts.path.strip("/")
    if not all(brokers) or not topic or "/" in topic:
        message = "expected kafka://broker[:port]/topic"
        raise bad_input(uri, message)
    with_port = (broker if ":" in broker else f"{broker}:{DEFAULT_PORT}" for broker in brokers)
    return ",".join(with_port), topic
