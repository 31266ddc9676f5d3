"""Queries to every running broker separately."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.kafka import broker_requests
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


def _brokers(monkeypatch: pytest.MonkeyPatch, failed: set[int]) -> LiveBrokers:
    cluster: Cluster = fake_cluster(WIDE)

    @contextmanager
    def client(address: str, within_ms: int = 0) -> Iterator[set[int]]:
        yield failed

    monkeypatch.setattr(broker_requests, "_client", client)
    monkeypatch.setattr(broker_requests, "_transactions", _answer)
    monkeypatch.setattr(cluster, "address", lambda node, port: node.name)
    return LiveBrokers(cluster, "kafka")


def test_a_broker_that_does_not_answer_is_named_with_the_answers_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, failed = _brokers(monkeypatch, {2}).every_transaction()

    assert [transaction.id for transaction in found] == ["t-1", "t-3"]
    assert failed == ("kafka/broker-2: KafkaTimeoutError KafkaTimeoutError: no answer",)


def test_no_broker_is_named_when_all_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found, failed = _brokers(monkeypatch, set()).every_transaction()

    assert ([transaction.coordinator for transaction in found], failed) == ([1, 2, 3], ())


def test_it_is_an_error_when_no_broker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaUnreachable, match=r"kafka/broker-1: .*; kafka/broker-2: "):
        _brokers(monkeypatch, {1, 2, 3}).every_transaction()
