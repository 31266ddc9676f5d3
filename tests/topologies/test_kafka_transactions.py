"""The transactional sink: rows and their batch number are committed together, exactly once."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import pytest

from streamquake.topologies.named_files import JOBS

ROWS = [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]


class Broker:
    """The committed rows of some transactional ids, and the batch numbers of their groups."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []
        self.batch_numbers: dict[str, int] = {}
        self.full_queue_times = 0
        """How many times a producer's queue is full."""
        self.commit_fails = False


class FakeProducer:
    def __init__(self, broker: Broker, settings: Mapping[str, Any]) -> None:
        self._broker = broker
        self.name = settings["transactional.id"]
        self._rows: list[tuple[str, str]] = []
        self._batch_number: int | None = None

    def init_transactions(self, timeout_s: float) -> None: ...

    def begin_transaction(self) -> None:
        self._rows, self._batch_number = [], None

    def poll(self, timeout_s: float) -> None: ...

    def produce(self, topic: str, value: str, key: str) -> None:
        if self._broker.full_queue_times:
            self._broker.full_queue_times -= 1
            raise BufferError
        self._rows.append((key, value))

    def send_offsets_to_transaction(self, offsets: Any, group: str, timeout_s: float) -> None:
        self._batch_number = offsets[0].offset

    def commit_transaction(self, timeout_s: float) -> None:
        if self._broker.commit_fails:
            raise RuntimeError("fenced")
        assert self._batch_number is not None, "rows without their batch number"
        self._broker.rows += self._rows
        self._broker.batch_numbers[self.name] = self._batch_number


class FakeConsumer:
    def __init__(self, broker: Broker, settings: Mapping[str, Any]) -> None:
        self._broker = broker
        self._group = settings["group.id"]

    def committed(self, places: Any, timeout: float) -> Any:
        places[0].offset = self._broker.batch_numbers.get(self._group, -1001)
        return places

    def consumer_group_metadata(self) -> str:
        return str(self._group)

    def close(self) -> None: ...


class Task:
    @staticmethod
    def get() -> Task:
        return Task()

    def partitionId(self) -> int:
        return 3


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def sink(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(JOBS / "lib"))
    module = importlib.import_module("kafka_transactions")
    monkeypatch.setattr(module, "Producer", lambda settings: FakeProducer(broker, settings))
    monkeypatch.setattr(module, "Consumer", lambda settings: FakeConsumer(broker, settings))
    monkeypatch.setattr(module, "TaskContext", Task)
    return module.KafkaTransactions("b:1", "out", "q", 1000)


def test_rows_are_committed_with_their_batch_number(sink: Any, broker: Broker) -> None:
    broker.full_queue_times = 2
    sink.write(ROWS, 0)
    assert broker.rows == [("a", "1"), ("b", "2")]
    assert broker.batch_numbers == {"q-3": 1}


def test_a_repeated_batch_writes_nothing(sink: Any, broker: Broker) -> None:
    for number in (0, 1, 1, 0):
        sink.write(ROWS, number)
    assert len(broker.rows) == 2 * len(ROWS)
    assert broker.batch_numbers == {"q-3": 2}


def test_a_batch_whose_commit_failed_is_written_by_the_next_attempt(
    sink: Any, broker: Broker
) -> None:
    broker.commit_fails = True
    with pytest.raises(RuntimeError, match="fenced"):
        sink.write(ROWS, 0)
    assert broker.rows == []
    broker.commit_fails = False
    sink.write(ROWS, 0)
    assert len(broker.rows) == len(ROWS)
