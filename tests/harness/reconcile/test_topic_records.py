"""Reading a topic with librdkafka: where a read ends, what it stores, and when it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.harness.reconcile.reading import stored_topic, topic_records
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from tests.harness.reconcile import whole_topic
from tests.harness.reconcile.record_tables import record_table

NO_SPARK: Any = None
"""Records of JSON are stored without Spark."""


class StubMessage(NamedTuple):
    """A record, or with an error code a mark in its place."""

    at: tuple[int, int]
    """Partition and offset."""
    code: int | None = None
    content: bytes | None = b"v"
    kind: int = TIMESTAMP_LOG_APPEND_TIME
    retried: bool = False

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]

    def timestamp(self) -> tuple[int, int]:
        return self.kind, 1000 + self.at[1]

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes | None:
        return self.content

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code, "", False, self.retried)


class StubConsumer:
    """Returns batches of messages, and then none."""

    settings: Mapping[str, Any]

    def __init__(self, batches: Sequence[Sequence[StubMessage] | Exception]) -> None:
        self.batches = list(batches)
        self.assigned: dict[int, int] = {}
        self.paused: list[int] = []
        self.closed = False

    def list_topics(self, topic: str, timeout: float) -> None:
        assert not self.assigned, "the leaders must be known before"
        assert timeout > 0

    def assign(self, places: Sequence[TopicPartition]) -> None:
        self.assigned = {place.partition: place.offset for place in places}

    def consume(self, count: int, timeout: float) -> Sequence[StubMessage]:
        batch = self.batches.pop(0) if self.batches else ()
        if isinstance(batch, Exception):
            raise batch
        return batch

    def pause(self, places: Sequence[TopicPartition]) -> None:
        self.paused += [place.partition for place in places]

    def close(self) -> None:
        self.closed = True


def end(partition: int, offset: int) -> StubMessage:
    return StubMessage((partition, offset), KafkaError._PARTITION_EOF)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Any:
    def replace(*batches: Sequence[StubMessage] | Exception) -> StubConsumer:
        consumer = StubConsumer(batches)

        def create(settings: Mapping[str, Any]) -> StubConsumer:
            consumer.settings = settings
            return consumer

        monkeypatch.setattr(topic_records, "Consumer", create)
        return consumer

    return replace


def places(tables: Sequence[pa.Table]) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for table in tables for row in table.to_pylist()]


def read(ends: Mapping[int, int], *, committed: bool = True, **named: Any) -> list[pa.Table]:
    return list(
        topic_records.topic_records(KafkaConnection("b"), "t", ends, committed=committed, **named)
    )


def test_a_read_ends_at_the_recorded_ends(stub: Any) -> None:
    """Partition 0 has a record behind its end, and partition 1 a control record at its end."""
    first = [StubMessage((0, 0)), StubMessage((1, 4), kind=TIMESTAMP_CREATE_TIME), end(1, 5)]
    consumer = stub(first, [StubMessage((0, 1)), StubMessage((0, 2))], [end(1, 6)])

    tables = read({0: 2, 1: 6, 2: 7}, starts={1: 4, 2: 7})

    assert places(tables) == [(0, 0), (1, 4), (0, 1)]
    assert consumer.assigned == {0: -2, 1: 4}  # nothing is to be read of partition 2
    assert (consumer.paused, consumer.closed) == ([0, 1], True)
    assert tables[0].to_pylist()[1] == {
        "topic": "t",
        "partition": 1,
        "offset": 4,
        "timestamp_ms": 1004,
        "key": b"k",
        "value": b"v",
        "committed": True,
        "appended": False,
    }


@pytest.mark.parametrize(
    ("committed", "level"), [(True, "read_committed"), (False, "read_uncommitted")]
)
def test_a_read_has_its_isolation_level(stub: Any, committed: bool, level: str) -> None:
    consumer = stub([StubMessage((0, 0))])

    (table,) = read({0: 1}, committed=committed)

    assert consumer.settings["isolation.level"] == level
    assert table["committed"].to_pylist() == [committed]


def test_a_topic_without_records_is_not_read(stub: Any) -> None:
    assert read({0: 0}) == []
    assert stub().assigned == {}


@pytest.mark.parametrize(
    "failure",
    [
        [StubMessage((0, 0), KafkaError.TOPIC_AUTHORIZATION_FAILED)],
        KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)),
    ],
)
def test_a_read_that_fails_names_the_topic(stub: Any, failure: Any) -> None:
    consumer = stub([StubMessage((0, 0))], failure)

    with pytest.raises(KafkaUnreachable, match=r"^t(/0)?: "):
        read({0: 2})
    assert consumer.closed


def test_a_read_without_progress_fails(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 1000, 7))
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    stub([StubMessage((0, 0))])

    with pytest.raises(KafkaUnreachable, match="no record for 60 s, and partition 0 is not read"):
        read({0: 2})


def test_an_error_that_the_client_retries_is_no_progress(
    stub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter(range(0, 1000, 7))
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    again = StubMessage((0, 0), KafkaError._TRANSPORT, retried=True)
    consumer = stub(*[[again]] * 30)

    with pytest.raises(KafkaUnreachable, match="no record for 60 s"):
        read({0: 2})
    assert consumer.batches


def test_uncommitted_records_are_those_that_are_not_committed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Offsets 1 and 3 of partition 0 were aborted, and 4 is a control record. A text that is no
    UTF-8 is kept as it is."""
    records = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]

    def read_topic(*_: object, committed: bool, **named: object) -> Any:
        rows = [
            ("t", *place, 0, b"\xfe", b"\xff", committed, True)
            for place in records
            if not (committed and place in {(0, 1), (0, 3)})
        ]
        return (record_table(rows[at : at + 2]) for at in range(0, len(rows), 2))

    monkeypatch.setattr(stored_topic, "topic_records", read_topic)
    monkeypatch.setattr(stored_topic, "ROW_GROUP", 3)
    into = StoredOutput(path=tmp_path / "t")

    whole_topic.read_topic(
        NO_SPARK, "b", "t", stable_ends={0: 5, 1: 2}, ends={0: 5, 1: 2}, into=into
    )

    parts = {
        name: pq.read_table(into.part(name)).select(["partition", "offset"]).to_pylist()
        for name in ("committed", "uncommitted")
    }
    assert [tuple(row.values()) for row in parts["uncommitted"]] == [(0, 1), (0, 3)]
    assert [tuple(row.values()) for row in parts["committed"]] == [(0, 0), (0, 2), (1, 0), (1, 1)]
    stored = pq.read_table(into.part("committed"))
    assert stored.schema.field("value").type == pa.string()
    assert stored["value"].cast(pa.binary()).to_pylist() == [b"\xff"] * 4
    facts = into.facts()
    assert (facts["records"], facts["uncommitted"], facts["stamped"]) == (4, 2, "append")


@pytest.mark.parametrize(
    ("kinds", "stamped"),
    [([True, True], "append"), ([False], "create"), ([True, False], "mixed"), ([], None)],
)
def test_a_read_in_parts_stores_each_part_and_counts_them_together(
    kinds: list[bool], stamped: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each part has a committed record, and an aborted one behind it."""
    reads: list[tuple[int, int]] = []

    def topic_records(*place: Any, committed: bool, starts: Any) -> Any:
        start, end = starts.get(0, 0), place[2][0]
        reads.append((start, end))
        rows = [("t", 0, start, 0, b"k", b"v", committed, kinds[start // 2])]
        aborted = ("t", 0, start + 1, 0, b"k", b"v", committed, True)
        return [record_table(rows if committed else [*rows, aborted])]

    monkeypatch.setattr(stored_topic, "topic_records", topic_records)
    into = StoredOutput(path=tmp_path / "t")
    read = stored_topic.TopicRead(KafkaConnection("b"), "t", into=into)
    for part in range(len(kinds)):
        read.read_until(None, {0: 2 * part + 2}, {0: 2 * part + 2})
    if not kinds:
        monkeypatch.setattr(stored_topic, "topic_records", lambda *_, **named: iter(()))
        read.read_until(None, {0: 0}, {0: 0})
    read.finish(7)

    facts = into.facts()
    assert (facts["records"], facts["uncommitted"]) == (len(kinds), len(kinds))
    assert (facts["stamped"], facts["began_ms"], facts["starts"]) == (stamped, 7, {})
    assert facts["ends"] == facts["stable_ends"] == {"0": 2 * len(kinds)}
    assert reads == [(2 * part, 2 * part + 2) for part in range(len(kinds)) for _ in range(2)]
    offsets: dict[bool, list[int]] = {True: [], False: []}
    for file in (into.path / "records").rglob("*.parquet"):
        for row in pq.read_table(file).to_pylist():
            offsets[row["committed"]].append(row["offset"])
    assert sorted(offsets[True]) == [2 * part for part in range(len(kinds))]
    assert sorted(offsets[False]) == [2 * part + 1 for part in range(len(kinds))]


def test_a_topic_that_lost_records_is_read_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three offsets of two partitions were read; then partition 1 has two."""
    reads: list[tuple[Mapping[int, int], Mapping[int, int]]] = []

    def topic_records(*place: Any, committed: bool, starts: Any) -> Any:
        reads.append((starts, place[2]))
        rows = [
            ("t", n, at, 0, b"k", b"v", committed, True)
            for n, end in place[2].items()
            for at in range(starts.get(n, 0), end)
        ]
        return [record_table(rows)]

    monkeypatch.setattr(stored_topic, "topic_records", topic_records)
    into = StoredOutput(path=tmp_path / "t")
    read = stored_topic.TopicRead(KafkaConnection("b"), "t", into=into)
    for ends in ({0: 3, 1: 3}, {0: 3, 1: 3}, {0: 4, 1: 2}):
        read.read_until(None, ends, ends)
    read.finish(None)

    assert reads == [({}, {0: 3, 1: 3}), ({0: 3, 1: 3}, {0: 3, 1: 3}), ({}, {0: 4, 1: 2})]
    assert into.facts()["records"] == into.rows() == 6


def test_a_part_that_failed_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object, committed: bool, starts: object) -> Any:
        yield record_table([("t", 0, 0, 0, b"k", b"v", committed, True)])
        raise KafkaUnreachable("gone")

    monkeypatch.setattr(stored_topic, "topic_records", broken)
    into = StoredOutput(path=tmp_path / "t")
    read = stored_topic.TopicRead(KafkaConnection("b"), "t", into=into)
    with pytest.raises(KafkaUnreachable):
        read.read_until(None, {0: 1}, {0: 1})
    assert list(into.path.rglob("*.parquet")) == []

    whole = [record_table([("t", 0, 0, 0, b"k", b"v", True, True)])]
    monkeypatch.setattr(stored_topic, "topic_records", lambda *_, **named: iter(whole))
    read.read_until(None, {0: 1}, {0: 1})
    read.finish(None)
    assert into.facts()["records"] == into.rows() == 1


def test_a_read_from_a_later_start_is_complete_without_uncommitted_records(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The last stable offset of partition 0 is before its start: of an earlier transaction."""
    reads: list[tuple[Mapping[int, int], bool, Mapping[int, int]]] = []

    def read_topic(
        brokers: str, topic: str, ends: Mapping[int, int], *, committed: bool, starts: Any
    ) -> Any:
        reads.append((ends, committed, starts))
        return [record_table([("t", 1, 0, 0, b"k", b"v", committed, True)])]

    monkeypatch.setattr(stored_topic, "topic_records", read_topic)
    into = StoredOutput(path=tmp_path / "t")

    whole_topic.read_topic(
        NO_SPARK,
        "b",
        "t",
        stable_ends={0: 2, 1: 1, 2: 0},
        ends={0: 3, 1: 1, 2: 0},
        starts={0: 3},
        into=into,
    )

    assert reads == [({0: 3, 1: 1, 2: 0}, True, {0: 3})]
    assert into.facts()["stable_ends"] == {"0": 3, "1": 1, "2": 0}
