"""Two workers of pytest-xdist, with one cluster for each topology, on the fake runtime."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster, remove_cluster
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.harness.campaign.clusters import cleaning, pool, state
from streamquake.harness.pytest import shared_clusters
from streamquake.harness.pytest.shared_clusters import SharedClusters
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.model import Topology
from tests.fakes import TOPOLOGY, WIDE, fake_cluster
from tests.harness.campaign.clusters.test_pool import EmptyService


class Workers:
    """The workers of one session, and what their runs recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.runtime = FakeRuntime(self.clock)
        self.deployed: list[str] = []
        self.clusters: dict[str, Cluster] = {}
        self.reused: list[dict[str, Any]] = []
        self.messages: list[str] = []
        self.waits = threading.Event()

    def new(self) -> SharedClusters:
        return SharedClusters(self.folder / "shared", self.runtime, self.clock, self.show_message)

    def show_message(self, line: str) -> None:
        self.messages.append(line)
        if line.startswith("waiting"):
            self.waits.set()

    def lease(self, topology: Topology = WIDE) -> Any:
        return SimpleNamespace(
            run_id=f"run-{len(self.deployed)}-{len(self.reused)}",
            experiment=SimpleNamespace(topology=topology, faults=()),
            folder=RunFolder(self.folder),
            loop=SimpleNamespace(history=History, record=self._record),
        )

    def _record(self, action: Action, **fields: Any) -> None:
        assert action == Action.CLUSTER_REUSED
        self.reused.append(fields)

    def attach(self, run_id: str, **known: Any) -> Cluster:
        """The cluster of a run. Its clients are fakes, which another object would not have."""
        return self.clusters[run_id]

    @contextmanager
    def deploy(self, lease: Any, *, keep: bool, warn: Any) -> Iterator[Cluster]:
        run_id = f"deployed-{len(self.deployed)}"
        self.deployed.append(run_id)
        topology = lease.experiment.topology
        yield self.clusters.setdefault(
            run_id, fake_cluster(topology, self.clock, runtime=self.runtime, run_id=run_id)
        )
        assert remove_cluster(self.runtime, run_id) == []

    @property
    def running(self) -> set[str]:
        return {found.labels[labels.RUN] for found in self.runtime.find({labels.RUN: ""})}


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workers:
    for module in (state, cleaning):
        monkeypatch.setattr(module, "cleaner", lambda cluster, name: EmptyService())
    found = Workers(tmp_path)
    monkeypatch.setattr(pool, "deploy_cluster", found.deploy)
    monkeypatch.setattr(shared_clusters, "attach_cluster", found.attach)
    monkeypatch.setattr(pool, "assign_to_run", lambda *args: nullcontext())
    monkeypatch.setattr(cleaning, "_await_ready", lambda cluster: None)
    return found


def use(worker: SharedClusters, lease: Any) -> str:
    with worker.cluster_for(lease) as cluster:
        return cluster.run_id


def test_a_worker_uses_the_cluster_that_another_one_deployed(workers: Workers) -> None:
    first, second = workers.new(), workers.new()

    used = [use(worker, workers.lease()) for worker in (first, second, first)]

    assert used == ["deployed-0"] * 3
    assert workers.deployed == ["deployed-0"]
    assert [fields["runs_before"] for fields in workers.reused] == [1, 2]
    second.remove()
    assert workers.running == {"deployed-0"}, "it was removed by another worker than its own"
    first.remove()
    assert workers.running == set()


def test_a_worker_waits_for_its_turn(workers: Workers) -> None:
    first, second = workers.new(), workers.new()
    used: list[str] = []
    thread = threading.Thread(target=lambda: used.append(use(second, workers.lease())))

    with first.cluster_for(workers.lease()):
        thread.start()
        assert workers.waits.wait(60), "the second worker does not wait"
        assert used == []
    thread.join(60)

    assert used == ["deployed-0"]


def test_a_changed_cluster_is_replaced_for_all(workers: Workers) -> None:
    first, second = workers.new(), workers.new()
    with first.cluster_for(workers.lease()) as cluster:
        node = cluster.node("hdfs/datanode-2").container
    workers.runtime.kill(node)

    used = [use(worker, workers.lease()) for worker in (second, first)]

    assert used == ["deployed-1"] * 2
    assert workers.running == {"deployed-1"}
    assert any("hdfs/datanode-2" in line for line in workers.messages)
    first.remove()
    assert workers.running == {"deployed-1"}
    second.remove()
    assert workers.running == set()


def test_a_failed_run_leaves_no_cluster(workers: Workers) -> None:
    first, second = workers.new(), workers.new()
    use(first, workers.lease())

    with pytest.raises(RuntimeError, match="of the run"), second.cluster_for(workers.lease()):
        raise RuntimeError("of the run")

    assert workers.running == set()
    assert use(first, workers.lease()) == "deployed-1"


def test_a_worker_with_another_topology_removes_its_cluster_unless_it_is_used(
    workers: Workers,
) -> None:
    first, second = workers.new(), workers.new()
    use(first, workers.lease())
    with second.cluster_for(workers.lease()):
        assert use(first, workers.lease(TOPOLOGY)) == "deployed-1"
        assert workers.running == {"deployed-0", "deployed-1"}

    use(first, workers.lease(TOPOLOGY))

    assert workers.running == {"deployed-1"}
    first.remove()
    assert workers.running == set()
