"""What prevents the reuse of a cluster: events of the last run, or a change while it was idle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import Contents
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.faults.fault import faults
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.campaign.clusters import cleaning, pool, state
from streamquake.harness.campaign.clusters.cleaning import clean_up
from streamquake.harness.campaign.clusters.pool import (
    IdleCluster,
    _changed_while_idle,
    _earlier_runs,
    _run_problem,
)
from streamquake.harness.campaign.clusters.state import ClusterState, read_state
from streamquake.harness.run.cluster_lease import NO_EARLIER_RUNS
from streamquake.reports.record.history import History
from streamquake.reports.record.run_folder import RunFolder
from tests.fakes import WIDE, fake_cluster


def lease(tmp_path: Path) -> Any:
    """The parts of a cluster lease that the check reads."""
    return SimpleNamespace(
        loop=SimpleNamespace(history=History),
        folder=RunFolder(tmp_path),
    )


def test_a_cluster_without_residue_can_be_reused(tmp_path: Path) -> None:
    assert _run_problem(lease(tmp_path)) is None


def test_a_cluster_with_an_open_fault_cannot_be_reused_until_it_is_healed(tmp_path: Path) -> None:
    log = IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=faults["pause"](), target="x", names=["x"])
    assert _run_problem(lease(tmp_path)) == "a fault is open"
    log.record_heal(intent)
    assert _run_problem(lease(tmp_path)) is None


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> IdleCluster:
    for module in (state, cleaning):
        monkeypatch.setattr(module, "cleaner", lambda cluster, name: EmptyService())
    cluster = fake_cluster(WIDE)
    return IdleCluster(cluster=cluster, deployed=read_state(cluster))


def test_the_next_run_is_told_what_earlier_runs_left(idle: IdleCluster) -> None:
    assert idle.deployed is not None
    assert _earlier_runs(idle) == NO_EARLIER_RUNS
    runtime, node = idle.cluster.runtime, idle.cluster.node("kafka/broker-1")
    assert isinstance(runtime, FakeRuntime)
    runtime.write_log(node.container, "of the first run")
    done = clean_up(idle.cluster, idle.deployed, had_agents=False)
    earlier = _earlier_runs(replace(idle, runs=("first",), clean_up=done))
    assert earlier.logs[node.name] == "of the first run\n"
    assert earlier.logs.keys() == idle.cluster.nodes.keys()
    assert earlier.remembered == done.remembered
    assert earlier.remembered["kafka"]


class EmptyService:
    """A service without contents."""

    def contents(self, cluster: Cluster, service: str) -> Contents:
        return {}

    def clean(self, cluster: Cluster, service: str, kept: Contents) -> None: ...


def test_an_idle_cluster_that_stayed_the_same_can_be_reused(idle: IdleCluster) -> None:
    assert _changed_while_idle(idle) is None


def test_a_process_that_ended_while_the_cluster_was_idle_is_found(idle: IdleCluster) -> None:
    idle.cluster.runtime.kill(idle.cluster.node("hdfs/datanode-2").container)
    assert "hdfs/datanode-2" in str(_changed_while_idle(idle))


def test_a_state_that_cannot_be_read_is_a_change(
    idle: IdleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(cluster: Cluster) -> ClusterState:
        raise ContainerError("no answer\nat all")

    monkeypatch.setattr(pool, "read_state", fail)
    assert _changed_while_idle(idle) == "no answer"
