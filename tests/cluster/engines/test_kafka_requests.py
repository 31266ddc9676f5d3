"""Queries to every running broker separately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def _brokers(
    monkeypatch: pytest.MonkeyPatch, failed: set[int], ended: str | None = None
) -> LiveBrokers:
    cluster: Cluster = fake_cluster(WIDE)
    if ended is not None:
        cluster.runtime.kill(cluster.node(ended).container)

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


def test_a_broker_that_does_not_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found, failed = _brokers(monkeypatch, set(), ended="kafka/broker-2").every_transaction()

    assert [transaction.id for transaction in found] == ["t-1", "t-3"]
    assert failed == ("kafka/broker-2: does not run",)


class Admin:
    """A broker whose settings are from its file, from a change, or the default."""

    def describe_configs(self, resources: Sequence[Any], config_filter: str) -> dict[str, Any]:
        assert config_filter == "all"
        sources = {
            "a": "DEFAULT_CONFIG",
            "b": "STATIC_BROKER_CONFIG",
            "c": "DYNAMIC_BROKER_CONFIG",
            "d": "DYNAMIC_TOPIC_CONFIG",
        }
        settings = {key: {"value": "1", "config_source": each} for key, each in sources.items()}
        return {
            kind: {r.name: settings for r in resources if r.resource_type.name.lower() == kind}
            for kind in ("broker", "topic")
        }


def test_only_changed_settings_are_named() -> None:
    found = broker_requests._changed_settings(Admin(), 2, ["in"])
    assert found == ("broker 2: c=1", "broker 2: d=1", "topic in: c=1", "topic in: d=1")


def test_changed_settings_and_quotas_need_the_answers_of_all_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def settings(client: Any, broker: int, topics: Sequence[str]) -> tuple[str, ...]:
        if broker in client:
            raise KafkaTimeoutError("no answer")
        return (f"broker {broker}: a=1", *topics)

    monkeypatch.setattr(broker_requests, "_changed_settings", settings)
    monkeypatch.setattr(broker_requests, "_client_quotas", lambda client, broker: ("quota",))
    named = ("broker 1: a=1", "broker 2: a=1", "broker 3: a=1", "in", "quota")
    assert _brokers(monkeypatch, set()).changed_settings(["in"]) == named
    with pytest.raises(KafkaUnreachable, match="changed settings: kafka/broker-2: "):
        _brokers(monkeypatch, {2}).changed_settings(["in"])
    with pytest.raises(KafkaUnreachable, match="changed settings: kafka/broker-3: does not run"):
        _brokers(monkeypatch, set(), ended="kafka/broker-3").changed_settings(["in"])
