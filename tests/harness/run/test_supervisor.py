"""The supervisor restarts a node that exited by itself, but not one that a fault keeps down."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster, NodeDied
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.cluster.sandbox import has_lost_network
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.supervisor import MAX_RESTARTS, Supervisor
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.metrics import Metrics
from tests.fakes import fake_cluster

WORKER = "flink/taskmanager-2"


class Testbed:
    def __init__(self, folder: Path) -> None:
        self.cluster: Cluster = fake_cluster()
        writer = HistoryWriter(folder / "history.jsonl")
        metrics = Metrics(folder / "metrics.parquet")
        self.loop = EventLoop(writer, metrics, self.cluster.clock, show=lambda: None)
        self.kept_down: tuple[str, ...] = ()
        self.supervisor = Supervisor(self.cluster, self.loop, lambda: self.kept_down)

    def die(self) -> None:
        assert isinstance(self.cluster.runtime, FakeRuntime)
        self.cluster.runtime.die(self.cluster.node(WORKER).container, exit_code=1)

    def status(self) -> ContainerStatus:
        return self.cluster.state(self.cluster.node(WORKER)).status


@pytest.fixture
def testbed(tmp_path: Path) -> Testbed:
    return Testbed(tmp_path)


def test_a_node_that_exited_is_restarted_and_recorded(testbed: Testbed) -> None:
    testbed.die()
    assert "started again" in str(testbed.cluster.pending(["flink"]))
    testbed.supervisor.poll()
    testbed.loop.tick()
    assert testbed.status() == ContainerStatus.RUNNING
    (revived,) = testbed.loop.history().of(Action.NODE_REVIVED)
    assert (revived.value["node"], revived.value["exit_code"]) == (WORKER, 1)


def test_a_node_that_a_fault_keeps_down_is_not_restarted(testbed: Testbed) -> None:
    testbed.kept_down = (WORKER,)
    testbed.die()
    testbed.supervisor.poll()
    assert testbed.status() == ContainerStatus.EXITED


def test_a_node_that_exits_too_often_is_given_up(testbed: Testbed) -> None:
    for _ in range(MAX_RESTARTS + 1):
        testbed.die()
        testbed.supervisor.poll()
    assert testbed.status() == ContainerStatus.EXITED
    with pytest.raises(NodeDied, match="exit code 1"):
        testbed.cluster.pending(["flink"])
    testbed.loop.tick()
    (given_up,) = testbed.loop.history().of(Action.NODE_GIVEN_UP)
    expected = {"node": WORKER, "exit_code": 1, "times": MAX_RESTARTS}
    assert given_up.value == expected


def test_a_node_that_is_given_up_is_recorded_once(testbed: Testbed) -> None:
    for _ in range(MAX_RESTARTS + 3):
        testbed.die()
        testbed.supervisor.poll()
    testbed.loop.tick()
    assert len(testbed.loop.history().of(Action.NODE_GIVEN_UP)) == 1


def lose_sandbox(testbed: Testbed, *, back: bool) -> None:
    """End the sandbox of the worker, as another process on the machine could; with
    `back` it is started again, with a new namespace."""
    testbed.cluster.runtime.kill(testbed.cluster.node(WORKER).sandbox)
    if back:
        testbed.cluster.runtime.start_again(testbed.cluster.node(WORKER).sandbox)


@pytest.mark.parametrize("back", [False, True])
def test_a_node_whose_process_has_no_network_is_restarted_and_recorded(
    testbed: Testbed, back: bool
) -> None:
    node, cluster = testbed.cluster.node(WORKER), testbed.cluster
    before = cluster.state(node)
    lose_sandbox(testbed, back=back)
    assert cluster.state(node) == before
    assert "lost its network and will be started again" in str(cluster.pending(["flink"]))
    testbed.supervisor.poll()
    testbed.loop.tick()
    assert cluster.state(node).started_ms > before.started_ms
    assert cluster.runtime.inspect(node.sandbox).status == ContainerStatus.RUNNING
    assert not has_lost_network(cluster, node, cluster.state(node))
    (revived,) = testbed.loop.history().of(Action.NODE_REVIVED)
    assert (revived.value["node"], revived.value["lost_network"]) == (WORKER, True)
    testbed.supervisor.poll()
    testbed.loop.tick()
    assert len(testbed.loop.history().of(Action.NODE_REVIVED)) == 1


@pytest.mark.parametrize("kept_down", [[(WORKER,), (WORKER,)], [(), (WORKER,)], [(WORKER,), ()]])
def test_a_node_whose_sandbox_a_fault_ended_is_not_restarted(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch, kept_down: list[tuple[str, ...]]
) -> None:
    """Also if the fault began or ended while the supervisor read the state."""
    lose_sandbox(testbed, back=False)
    answers = iter(kept_down)
    monkeypatch.setattr(testbed.supervisor, "_kept_down", lambda: next(answers))
    before = testbed.cluster.state(testbed.cluster.node(WORKER))
    testbed.supervisor.poll()
    assert testbed.cluster.state(testbed.cluster.node(WORKER)) == before


def test_a_lost_network_of_a_node_that_is_not_supervised_is_named(testbed: Testbed) -> None:
    testbed.cluster.run.supervised.clear()
    lose_sandbox(testbed, back=False)
    with pytest.raises(NodeDied, match=f"{WORKER} has lost its network"):
        testbed.cluster.pending(["flink"])
