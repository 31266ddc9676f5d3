"""Flink with several JobManagers: plans, the leader, failover of queries, and takeover of a job."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from streamquake.cluster.engines.engine import PortAllocator, StartsAfter, engine
from streamquake.cluster.engines.flink import ha as flink_ha
from streamquake.cluster.engines.flink.rest import FlinkRest, FlinkUnreachable
from streamquake.cluster.engines.flink.states import StateWatch
from streamquake.cluster.engines.flink.tasks import NodeNames, TaskWatch
from streamquake.cluster.engines.zookeeper import engine as zookeeper
from streamquake.cluster.engines.zookeeper.client import ZooKeeperUnreachable
from streamquake.reports.record.event import Action
from streamquake.topologies.model import Topology
from tests.cluster.engines.recorded import JOB, answer
from tests.fakes import fake_cluster

HA = {"high-availability.type": "zookeeper"}


def topology(
    *,
    config: dict[str, Any] = HA,
    others: tuple[str, ...] = ("zookeeper", "hdfs"),
    jobmanagers: int = 2,
) -> Topology:
    services: dict[str, Any] = {
        "zookeeper": {"engine": "zookeeper", "nodes": {"server": 1}},
        "hdfs": {"engine": "hdfs", "nodes": {"namenode": 1, "datanode": 1}},
    }
    nodes = {"jobmanager": jobmanagers, "taskmanager": 1}
    flink = {"engine": "flink", "nodes": nodes, "config": config}
    present = {name: services[name] for name in others}
    return Topology.model_validate({"name": "t", "services": {**present, "flink": flink}})


def problems(declared: Topology) -> dict[str, str]:
    return {
        ".".join(path): message for path, message in engine("flink").problems(declared, "flink")
    }


def config_of(declared: Topology, name: str) -> dict[str, Any]:
    flink = engine("flink")
    nodes = {n.name: n for n in (*declared.nodes(), *flink.extra_nodes(declared, "flink"))}
    (text,) = flink.plan(declared, nodes[name], PortAllocator(host=lambda n, p: p)).files.values()
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def test_several_jobmanagers_need_high_availability() -> None:
    assert problems(topology()) == {}
    rejected = problems(topology(config={}))
    assert "high-availability.type: zookeeper" in rejected["nodes.jobmanager"]
    assert "got 2" in rejected["nodes.jobmanager"]
    alone = problems(topology(others=()))["config.high-availability.type"]
    assert "or high-availability.storageDir" in alone
    given = {**HA, flink_ha.QUORUM: "elsewhere:2181", flink_ha.STORE: "s3://ha"}
    assert problems(topology(others=(), config=given)) == {}


def test_jobmanagers_are_started_after_zookeeper_and_hdfs() -> None:
    flink = engine("flink")
    assert isinstance(flink, StartsAfter)
    assert flink.after(topology(), "flink") == ("zookeeper", "hdfs")
    assert flink.after(topology(config={}, jobmanagers=1), "flink") == ()
    given = {**HA, flink_ha.QUORUM: "elsewhere:2181", flink_ha.STORE: "s3://ha"}
    assert flink.after(topology(others=(), config=given), "flink") == ()


def test_each_jobmanager_has_its_own_address_and_all_nodes_the_ensembles() -> None:
    second = config_of(topology(), "flink/jobmanager-2")
    assert second["jobmanager.rpc.address"] == second["rest.address"] == "flink-jobmanager-2"
    for name in ("flink/jobmanager-2", "flink/taskmanager-1", "flink/gateway-1"):
        found = config_of(topology(), name)
        assert found[flink_ha.QUORUM] == "zookeeper-server-1:2181"
        assert found[flink_ha.STORE] == "hdfs://hdfs-namenode-1:8020/flink/ha"
        assert int(found["high-availability.jobmanager.port"]) == 6123
    assert flink_ha.QUORUM not in config_of(topology(config={}, jobmanagers=1), "flink/gateway-1")


def test_the_leader_is_the_running_jobmanager_that_zookeeper_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, paths = fake_cluster(topology()), []
    content: bytes | Exception | None = b"\x00pekko.tcp://flink@flink-jobmanager-2:6123/user/rpc/d"

    def read(cluster: object, service: str, path: str) -> bytes | None:
        paths.append(path)
        if isinstance(content, Exception):
            raise content
        return content

    monkeypatch.setattr(zookeeper, "read", read)
    assert flink_ha.leader(cluster, "flink").name == "flink/jobmanager-2"
    assert paths == ["/flink/flink/leader/dispatcher/connection_info"]
    assert [n.name for n in flink_ha.standbys(cluster, "flink")] == ["flink/jobmanager-1"]
    cluster.runtime.kill(cluster.node("flink/jobmanager-2").container)
    with pytest.raises(LookupError, match="leads now; the last leader was"):
        flink_ha.leader(cluster, "flink")
    content = None
    with pytest.raises(LookupError, match="no jobmanager of flink leads now"):
        flink_ha.leader(cluster, "flink")
    content = ZooKeeperUnreachable("zookeeper/server-1: does not answer")
    with pytest.raises(LookupError, match="is not known: zookeeper/server-1"):
        flink_ha.leader(cluster, "flink")


def test_the_jobs_that_the_next_leader_would_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {"/flink/flink/jobs": ("a1",), "/flink/flink/execution-plans": ("a1", "b2")}
    monkeypatch.setattr(zookeeper, "children", lambda cluster, service, path: stored.get(path, ()))
    assert flink_ha.stored_jobs(fake_cluster(topology()), "flink") == {"a1", "b2"}
    alone = fake_cluster(topology(config={}, jobmanagers=1))
    assert flink_ha.stored_jobs(alone, "flink") == frozenset()


def test_jobs_in_an_unreachable_zookeeper_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> tuple[str, ...]:
        raise ZooKeeperUnreachable("zookeeper/server-1: does not answer")

    monkeypatch.setattr(zookeeper, "children", fail)
    with pytest.raises(ZooKeeperUnreachable):
        flink_ha.stored_jobs(fake_cluster(topology()), "flink")


class RecordedRequests(FlinkRest):
    """Two addresses, some of which do not answer; records the requests and their addresses."""

    def __init__(self) -> None:
        super().__init__("one", "two")
        self.unreachable: set[str] = set()
        self.requests: list[tuple[str, str, str]] = []

    def _send(self, method: str, path: str, **arguments: Any) -> Any:
        address = self._urls[0].removeprefix("http://")
        self.requests.append((method, path, address))
        if address in self.unreachable:
            raise FlinkUnreachable(path)
        return address


def test_a_query_is_retried_at_the_next_address_which_is_then_kept() -> None:
    rest = RecordedRequests()
    assert rest.get("/jobs") == "one"
    rest.unreachable = {"one"}
    assert rest.get("/jobs") == "two"
    rest.unreachable = set()
    assert rest.get("/jobs") == "two"
    rest.unreachable = {"one", "two"}
    with pytest.raises(FlinkUnreachable):
        rest.get("/jobs")


def test_a_change_is_sent_once_to_an_address_that_answered_a_query() -> None:
    rest = RecordedRequests()
    rest.unreachable = {"one"}
    assert rest.post("/jobs/x/savepoints", {}) == "two"
    changes = [address for method, _, address in rest.requests if method == "POST"]
    assert changes == ["two"]


def test_a_takeover_by_another_jobmanager_is_recorded_as_a_restart() -> None:
    detail = {"state": "RUNNING", "timestamps": {"INITIALIZING": 1_000, "RESTARTING": 0}}
    watch = StateWatch(JOB)
    assert list(watch.poll(detail)) == []
    taken_over = {"state": "RUNNING", "timestamps": {"INITIALIZING": 9_000, "RESTARTING": 0}}
    (restarting,) = watch.poll(taken_over)
    assert (restarting.action, restarting.value["restarting_ms"]) == (Action.JOB_RESTARTING, 9_000)
    assert list(watch.poll(taken_over)) == []


def test_attempts_with_restarted_numbers_are_distinguished_by_their_start() -> None:
    vertices = [copy.deepcopy(answer(f"vertex-{n}")) for n in range(3)]
    tasks = [task for vertex in vertices for task in vertex["subtasks"]]
    for task in tasks:
        task |= {"status": "RUNNING", "attempt": 0, "start-time": 1_000}
    watch = TaskWatch(JOB, NodeNames({}, list))
    assert list(watch.poll(vertices))[-1].action == Action.JOB_RUNNING
    for task in tasks:
        task["start-time"] = 9_000
    again = [observation.action for observation in watch.poll(vertices)]
    assert again == [Action.TASK_CHANGED] * len(tasks) + [Action.JOB_RUNNING]


def test_a_removed_subtask_of_a_rescaled_vertex_is_ignored() -> None:
    vertices = [copy.deepcopy(answer(f"vertex-{n}")) for n in range(3)]
    for vertex in vertices:
        for task in vertex["subtasks"]:
            task |= {"status": "RUNNING", "attempt": 0, "start-time": 1_000}
    vertices[0]["subtasks"][-1]["status"] = "CANCELED"
    watch = TaskWatch(JOB, NodeNames({}, list))
    assert Action.JOB_RUNNING not in [observation.action for observation in watch.poll(vertices)]
    vertices[0]["subtasks"].pop()
    assert [observation.action for observation in watch.poll(vertices)] == [Action.JOB_RUNNING]


def test_a_job_without_subtasks_does_not_run_completely() -> None:
    vertices = [copy.deepcopy(answer(f"vertex-{n}")) for n in range(3)]
    for vertex in vertices:
        for task in vertex["subtasks"]:
            task |= {"status": "RUNNING", "attempt": 0, "start-time": 1_000}
    watch = TaskWatch(JOB, NodeNames({}, list))
    assert list(watch.poll(vertices))[-1].action == Action.JOB_RUNNING
    assert list(watch.poll([{**vertex, "subtasks": []} for vertex in vertices])) == []
    assert list(watch.poll(vertices))[-1].action == Action.JOB_RUNNING
