"""Baselines ahead of the strike: fresh ones are used, others are measured again."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor, Future
from typing import Any, ClassVar

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.fault import Target
from streamquake.faults.schedule.target import parse_target
from streamquake.harness.run.baselines import AGAIN_NS, STALE_NS, BaselinesAhead, widest
from tests.fakes import fake_cluster


class AtOnce(Executor):
    """Does its work in the caller's thread."""

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*args, **kwargs))
        return done


class Measured(Pause):
    """A pause that measures something, and counts how often."""

    names: ClassVar[list[str]] = []

    def baseline(self, cluster: Cluster, target: Target) -> Mapping[str, Any]:
        self.names.append(target.name)
        return {"count": len(self.names)}


@pytest.fixture
def cluster() -> Cluster:
    Measured.names.clear()
    return fake_cluster()


def ahead(cluster: Cluster, target: str, fault: Pause | None = None) -> BaselinesAhead:
    return BaselinesAhead(fault or Measured(), parse_target(target), cluster, AtOnce())


def test_every_node_that_may_be_meant_is_measured_once(cluster: Cluster) -> None:
    waiting = ahead(cluster, "one of flink/taskmanager")
    waiting.refresh()
    waiting.refresh()
    assert len(Measured.names) == 3
    node = cluster.node("flink/taskmanager-2")
    assert waiting.of([node]) == {node.name: {"count": 2}}
    assert len(Measured.names) == 3


def test_an_old_baseline_is_measured_again_and_a_stale_one_not_used(cluster: Cluster) -> None:
    waiting = ahead(cluster, "flink/taskmanager-1")
    node = cluster.node("flink/taskmanager-1")
    waiting.refresh()
    cluster.clock.sleep(AGAIN_NS / 1e9)
    waiting.refresh()
    assert waiting.of([node])[node.name] == {"count": 2}
    cluster.clock.sleep(STALE_NS / 1e9 + 1)
    assert waiting.of([node])[node.name] == {"count": 3}


def test_what_was_measured_before_a_change_is_forgotten(cluster: Cluster) -> None:
    waiting = ahead(cluster, "flink/taskmanager-1")
    node = cluster.node("flink/taskmanager-1")
    waiting.refresh()
    waiting.forget()
    assert waiting.of([node])[node.name] == {"count": 2}
    waiting.refresh()
    assert waiting.of([node])[node.name] == {"count": 3}
    assert len(Measured.names) == 3


def test_a_measurement_that_fails_is_left_to_the_strike(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Mapping[str, Any]:
        raise ConnectionError("gone")

    waiting = ahead(cluster, "flink/taskmanager-1")
    with monkeypatch.context() as patch:
        patch.setattr(Measured, "baseline", fails)
        waiting.refresh()
    assert waiting.of([cluster.node("flink/taskmanager-1")])


def test_faults_that_measure_nothing_are_not_asked(cluster: Cluster) -> None:
    waiting = ahead(cluster, "flink/taskmanager-1", Pause())
    waiting.refresh()
    node = cluster.node("flink/taskmanager-1")
    assert waiting.of([node]) == {node.name: {}}


@pytest.mark.parametrize(
    ("target", "certain"),
    [
        ("between one of flink/taskmanager and kafka/broker-1", True),
        ("link sink", True),
        ("the leader of partition 0 of input", False),
        ("from the leader of partition 0 of input to flink/taskmanager-1", False),
    ],
)
def test_what_only_the_system_can_tell_is_not_guessed(target: str, certain: bool) -> None:
    assert (widest(parse_target(target)) is not None) == certain
