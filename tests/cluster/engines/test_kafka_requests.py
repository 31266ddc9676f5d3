"""Asking each running broker by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.kafka import broker_requests as kafka_asking
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.broker_requests import LiveBrokers
from streamquake.cluster.engines.kafka.brokers import Transaction
from tests.fakes import WIDE, fake_cluster


def _answer(client: Any, number: int) -> tuple[Transaction, ...]:
    if number in client:
        raise KafkaTimeoutError("no answer")
    return (
        Transaction(id=f"t-{number}", coordinator=number, state="Empty", epoch=0, timeout_ms=1),
    )


def _asked(monkeypatch: pytest.MonkeyPatch, silent: set[int]) -> LiveBrokers:
    cluster: Cluster = fake_cluster(WIDE)

    @contextmanager
    def client(address: str, within_ms: int = 0) -> Iterator[set[int]]:
        yield silent

    monkeypatch.setattr(kafka_asking, "_client", client)
    monkeypatch.setattr(kafka_asking, "_transactions", _answer)
    monkeypatch.setattr(cluster, "address", lambda node, port: node.name)
    return LiveBrokers(cluster, "kafka")


def test_a_broker_that_does_not_answer_is_named_beside_the_answers_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, silent = _asked(monkeypatch, {2}).every_transaction()

    assert [each.id for each in found] == ["t-1", "t-3"]
    assert silent == ("kafka/broker-2: KafkaTimeoutError KafkaTimeoutError: no answer",)


def test_of_brokers_that_all_answer_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found, silent = _asked(monkeypatch, set()).every_transaction()

    assert ([each.coordinator for each in found], silent) == ([1, 2, 3], ())


def test_without_any_answer_there_is_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaUnreachable, match=r"kafka/broker-1: .*; kafka/broker-2: "):
        _asked(monkeypatch, {1, 2, 3}).every_transaction()
