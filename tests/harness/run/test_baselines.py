"""Baselines measured before the injection: recent ones are used, older ones are measured again."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor, Future
from typing import Any, ClassVar

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.fault import Target
from streamquake.faults.schedule.target import parse_target
from streamquake.harness.run.baselines import (
    REFRESH_AFTER_NS,
    STALE_NS,
    BaselineCache,
    all_candidates,
)
from tests.fakes import fake_cluster


class SynchronousExecutor(Executor):
    """Runs its work in the caller's thread."""

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*args, **kwargs))
        return done


class MeasuringPause(Pause):
    """A pause with a baseline; it counts the measurements."""

    measured_on: ClassVar[list[str]] = []

    def baseline(self, cluster: Cluster, target: Target) -> Mapping[str, Any]:
        self.measured_on.append(target.name)
        return {"count": len(self.measured_on)}


@pytest.fixture
def cluster() -> Cluster:
    MeasuringPause.measured_on.clear()
    return fake_cluster()


def cache_of(cluster: Cluster, target: str, fault: Pause | None = None) -> BaselineCache:
    return BaselineCache(
        fault or MeasuringPause(), parse_target(target), cluster, SynchronousExecutor()
    )


def test_every_candidate_node_is_measured_once(cluster: Cluster) -> None:
    cache = cache_of(cluster, "one of flink/taskmanager")
    cache.refresh()
    cache.refresh()
    assert len(MeasuringPause.measured_on) == 3
    node = cluster.node("flink/taskmanager-2")
    assert cache.of([node]) == {node.name: {"count": 2}}
    assert len(MeasuringPause.measured_on) == 3


def test_an_old_baseline_is_measured_again_and_a_stale_one_is_not_used(cluster: Cluster) -> None:
    cache = cache_of(cluster, "flink/taskmanager-1")
    node = cluster.node("flink/taskmanager-1")
    cache.refresh()
    cluster.clock.sleep(REFRESH_AFTER_NS / 1e9)
    cache.refresh()
    assert cache.of([node])[node.name] == {"count": 2}
    cluster.clock.sleep(STALE_NS / 1e9 + 1)
    assert cache.of([node])[node.name] == {"count": 3}


def test_a_baseline_measured_before_a_cluster_change_is_discarded(cluster: Cluster) -> None:
    cache = cache_of(cluster, "flink/taskmanager-1")
    node = cluster.node("flink/taskmanager-1")
    cache.refresh()
    cache.invalidate()
    assert cache.of([node])[node.name] == {"count": 2}
    cache.refresh()
    assert cache.of([node])[node.name] == {"count": 3}
    assert len(MeasuringPause.measured_on) == 3


def test_a_failed_measurement_is_repeated_at_the_injection(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing_baseline(*_: object) -> Mapping[str, Any]:
        raise ConnectionError("unreachable")

    cache = cache_of(cluster, "flink/taskmanager-1")
    with monkeypatch.context() as patch:
        patch.setattr(MeasuringPause, "baseline", failing_baseline)
        cache.refresh()
    assert cache.of([cluster.node("flink/taskmanager-1")])


def test_a_fault_without_baseline_is_not_measured(cluster: Cluster) -> None:
    cache = cache_of(cluster, "flink/taskmanager-1", Pause())
    cache.refresh()
    node = cluster.node("flink/taskmanager-1")
    assert cache.of([node]) == {node.name: {}}


@pytest.mark.parametrize(
    ("target", "has_candidates"),
    [
        ("between one of flink/taskmanager and kafka/broker-1", True),
        ("link sink", True),
        ("the leader of partition 0 of input", False),
        ("from the leader of partition 0 of input to flink/taskmanager-1", False),
    ],
)
def test_a_target_that_is_resolved_at_the_injection_has_no_candidates(
    target: str, has_candidates: bool
) -> None:
    assert (all_candidates(parse_target(target)) is not None) == has_candidates
