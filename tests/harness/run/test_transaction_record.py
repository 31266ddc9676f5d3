"""The transactions that the coordinators report, as recorded in the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.kafka.broker_requests import _transactions
from streamquake.cluster.engines.kafka.brokers import OPEN
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run import runner
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.transaction_record import record_transactions
from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.metrics import Metrics
from tests.fakes import WIDE, fake_cluster
from tests.fakes.worlds.storage import FakeBrokers
from tests.harness.run.test_runner import Stage, stage

__all__ = ["stage"]  # a fixture

TOPIC = {"outputs": {"totals": {"kafka": "totals"}}}
NO_JOBS: Mapping[str, Any] = {}
LOAD = {"numbered": {"records": 100, "rate_per_s": 100}}


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


def recorded_events(
    cluster: Cluster, folder: Path, others: Mapping[str, Any] = NO_JOBS, **job: Any
) -> list[Event]:
    loop = EventLoop(
        HistoryWriter(folder / "history.jsonl"),
        Metrics(folder / "metrics.parquet"),
        cluster.clock,
        show=lambda: None,
    )
    experiment = Experiment.model_validate(
        {
            "name": "transactions",
            "topology": WIDE,
            "workload": LOAD,
            "other_jobs": others,
            "job": {"sql": "SELECT 1", "promise": TOPIC, **job},
        }
    )
    record_transactions(experiment, cluster, loop, "drain")
    loop.tick()
    return list(loop.history())


def brokers_of(cluster: Cluster) -> FakeBrokers:
    found = cluster.clients["kafka"]
    assert isinstance(found, FakeBrokers)
    return found


def test_every_transactional_id_of_the_run_is_recorded(cluster: Cluster, tmp_path: Path) -> None:
    states = brokers_of(cluster).transaction_states
    states[:] = [replace(states[0], started_ms=7), replace(states[1], id="other-run-1")]
    (event,) = recorded_events(cluster, tmp_path)
    assert (event.action, event.kind) == (Action.TRANSACTIONS_SEEN, Kind.OK)
    assert event.process == "kafka"
    assert event.value["after"] == "drain"
    assert event.value["asked_ms"] == cluster.clock.epoch_ms()
    assert event.value["transactions"] == [
        {
            "id": "test-totals-1-1",
            "coordinator": 1,
            "state": OPEN,
            "epoch": 0,
            "timeout_ms": 900_000,
            "started_ms": 7,
        }
    ]


def test_transactions_of_other_jobs_are_not_those_of_the_job(
    cluster: Cluster, tmp_path: Path
) -> None:
    states = brokers_of(cluster).transaction_states
    states[:] = [states[0], replace(states[1], id="test.enrich-between-0-1")]
    (event,) = recorded_events(cluster, tmp_path, {"enrich": {"sql": "SELECT 1"}})
    assert [each["id"] for each in event.value["transactions"]] == ["test-totals-1-1"]


def test_on_a_reused_cluster_only_ids_of_the_current_run_are_recorded(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.run.run_id = "next"
    states = brokers_of(cluster).transaction_states
    states.append(replace(states[0], id="next-totals-0-1"))
    (event,) = recorded_events(cluster, tmp_path)
    assert [found["id"] for found in event.value["transactions"]] == ["next-totals-0-1"]


def test_unreachable_brokers_are_recorded_and_fail_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    for node in cluster.of_role("kafka/broker"):
        cluster.runtime.kill(node.container)
    (event,) = recorded_events(cluster, tmp_path)
    assert (event.action, event.process) == (Action.TRANSACTIONS_SEEN, "kafka")
    assert (event.kind, event.error) == (Kind.FAIL, "no broker runs")
    asked_ms = cluster.clock.epoch_ms()
    expected = {"after": "drain", "asked_ms": asked_ms, "unanswered": "no broker runs"}
    assert event.value == expected


def test_unreachable_brokers_are_recorded_beside_the_answers_of_reachable_ones(
    cluster: Cluster, tmp_path: Path
) -> None:
    brokers_of(cluster).silent = ("kafka/broker-2: timed out",)
    (event,) = recorded_events(cluster, tmp_path)
    assert event.value["unanswered"] == "kafka/broker-2: timed out"
    assert event.value["transactions"]


def test_an_error_of_the_library_is_recorded_too(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ValueError("'Dead' is not a valid TransactionState")

    monkeypatch.setattr(brokers_of(cluster), "every_transaction", fail)
    (event,) = recorded_events(cluster, tmp_path)
    message = """ValueError("'Dead' is not a valid TransactionState")"""
    assert (event.value["unanswered"], event.error) == (message, message)


@pytest.mark.parametrize(
    "job", [{"sink": "at-least-once"}, {"promise": {"outputs": {"files": {"hdfs": "/output"}}}}]
)
def test_without_a_transactional_sink_no_broker_is_queried(
    cluster: Cluster, tmp_path: Path, job: dict[str, Any]
) -> None:
    assert recorded_events(cluster, tmp_path, **job) == []


def test_a_run_queries_after_recovery_and_after_the_drain(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requested: list[str] = []
    monkeypatch.setattr(runner, "record_transactions", lambda *args: requested.append(args[-1]))
    assert stage.run().ended == "completed"
    assert requested == ["recovery", "drain"]


@pytest.mark.parametrize(
    ("reported_ms", "started_ms"), [(1_700_000_000_000, 1_700_000_000_000), (-1, None)]
)
def test_the_start_of_a_transaction_is_known_if_reported(
    reported_ms: int, started_ms: int | None
) -> None:
    described = SimpleNamespace(
        state=SimpleNamespace(value=OPEN),
        producer_epoch=3,
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=reported_ms,
    )
    client: Any = SimpleNamespace(
        list_transactions=lambda broker_ids: {1: [SimpleNamespace(transactional_id="run-1")]},
        describe_transactions=lambda ids: dict.fromkeys(ids, described),
    )
    (found,) = _transactions(client, 1)
    assert (found.id, found.started_ms) == ("run-1", started_ms)
