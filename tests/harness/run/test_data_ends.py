"""The last record of each partition is found behind any number of transaction markers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.harness.run import data_ends as module
from streamquake.harness.run.data_ends import FIRST_SEARCHED, data_ends

BROKERS = KafkaConnection("brokers")


class Topic:
    """The offsets of the records of each partition; all others are markers."""

    def __init__(self, **records: list[int]) -> None:
        self.records = {int(name.removeprefix("p")): found for name, found in records.items()}
        self.read_from: list[Mapping[int, int]] = []

    def read(
        self,
        brokers: KafkaConnection,
        topic: str,
        ends: Mapping[int, int],
        *,
        committed: bool,
        starts: Mapping[int, int],
    ) -> Iterator[Any]:
        assert (topic, committed) == ("between", True)
        self.read_from.append(dict(starts))
        for partition, end in ends.items():
            offsets = [o for o in self.records[partition] if starts[partition] <= o < end]
            yield pa.table({"partition": [partition] * len(offsets), "offset": offsets})


def ends_of(
    topic: Topic,
    ends: Mapping[int, int],
    patch: pytest.MonkeyPatch,
    begins: Mapping[int, int] | None = None,
) -> dict[int, int]:
    patch.setattr(module, "topic_records", topic.read)
    return data_ends(BROKERS, "between", ends, begins or {})


def test_markers_behind_the_last_record_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(p0=[0, 1, 2, 4, 5], p1=[0], p2=[])
    assert ends_of(topic, {0: 8, 1: 1, 2: 2, 3: 0}, monkeypatch) == {0: 6, 1: 1}
    assert topic.read_from == [{0: 0, 1: 0, 2: 0}]


def test_the_search_goes_back_until_a_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    end = 5 * FIRST_SEARCHED
    topic = Topic(p0=[3], p1=[end - 2])
    assert ends_of(topic, {0: end, 1: end}, monkeypatch) == {0: 4, 1: end - 1}
    first = {0: end - FIRST_SEARCHED, 1: end - FIRST_SEARCHED}
    assert topic.read_from == [first, {0: 0}]


def test_records_from_before_the_run_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(p0=[0, 5], p1=[0])
    assert ends_of(topic, {0: 9, 1: 5}, monkeypatch, {0: 4, 1: 4}) == {0: 6}
    assert topic.read_from == [{0: 4, 1: 4}]
