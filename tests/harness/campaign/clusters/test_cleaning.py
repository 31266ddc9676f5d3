"""The clean-up of a cluster: what a run may leave on it is removed, or found and named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.disks import KEEPER_NODE
from streamquake.cluster.engines.engine import Contents
from streamquake.cluster.engines.flink.engine import FlinkEngine
from streamquake.cluster.jvm_agent import JvmAgent
from streamquake.cluster.links.links import PROXY_NODE
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.waiting import NotReadyInTime
from streamquake.cluster.sandbox import has_lost_network
from streamquake.faults.fault import Fault, faults
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.campaign.clusters import cleaning, state
from streamquake.harness.campaign.clusters.cleaning import clean_up
from streamquake.harness.campaign.clusters.state import (
    MORE_MB,
    ClusterState,
    differences,
    first_difference,
    read_state,
)
from streamquake.topologies.model import Name
from tests.fakes import WIDE, fake_cluster
from tests.injecting import FaultInjector


class Service:
    """A service whose contents a test sets; it removes all of them unless it is stuck."""

    def __init__(self) -> None:
        self.topics = {"kept"}
        self.is_stuck = False

    def contents(self, cluster: Cluster, service: str) -> Contents:
        return {"topics": frozenset(self.topics)}

    def clean(self, cluster: Cluster, service: str, kept: Contents) -> None:
        if not self.is_stuck:
            self.topics &= kept["topics"]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    service = Service()
    for module in (state, cleaning):
        monkeypatch.setattr(module, "cleaner", lambda cluster, name: service)
    return service


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


def leave(cluster: Cluster, folder: Path, name: str, **parameters: Any) -> None:
    """Inject a fault and do not heal it."""
    kind = faults[name]
    fault: Fault = kind(**{**kind.example, **parameters})
    injector = FaultInjector(cluster, IntentLog(folder / "intents.jsonl"), limit_s=2)
    _, injected = injector.inject_fault(fault)
    assert injected.done, injected.reason


def test_a_cluster_without_residue_is_proven_without_a_restart(
    cluster: Cluster, service: Service
) -> None:
    deployed = read_state(cluster)
    service.topics.add("of the run")
    done = clean_up(cluster, deployed, had_agents=True)
    assert done.restarted == ()
    assert done.equal["processes"] == done.equal["sandboxes"] == len(cluster.nodes)
    assert done.equal["topics"] == len(cluster.topology.services)
    assert done.fields["seconds"] >= 0
    assert done.remembered == {"kafka": {f"test-totals-{n}-1 of epoch 0" for n in (1, 2, 3)}}
    assert service.topics == {"kept"}


@pytest.mark.parametrize("name", ["isolate", "pause", "dns_failure", "kill", "power_off"])
def test_a_node_in_another_state_is_started_anew(
    cluster: Cluster, service: Service, tmp_path: Path, name: str
) -> None:
    deployed = read_state(cluster)
    leave(cluster, tmp_path, name)
    (place,) = differences(deployed, read_state(cluster))
    if name == "kill":  # the cluster is ready only when its nodes run
        cluster.start_again(cluster.nodes[place])
    if name == "power_off":
        cluster.start_again(cluster.nodes[place])
        cluster.runtime.kill(cluster.nodes[place].sandbox)
    done = clean_up(cluster, deployed, had_agents=False)
    assert done.restarted == (() if name == "kill" else (place,))
    assert differences(deployed, read_state(cluster)) == {}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("slow_link", "the links: toxics: "),
        ("cpu_limit", "hdfs/datanode-2: limits: cpus "),
        ("memory_limit", "hdfs/datanode-2: limits: memory "),
    ],
)
def test_what_a_restart_does_not_remove_is_named(
    cluster: Cluster, service: Service, tmp_path: Path, name: str, found: str
) -> None:
    deployed = read_state(cluster)
    leave(cluster, tmp_path, name)
    with pytest.raises(NotReadyInTime, match=f"{found}.*was not there after the deployment"):
        clean_up(cluster, deployed, had_agents=False)


def test_a_process_with_an_agent_is_started_anew(
    cluster: Cluster, service: Service, tmp_path: Path
) -> None:
    deployed = read_state(cluster)
    leave(cluster, tmp_path, "throw_in_task")
    node = cluster.node("flink/taskmanager-1")
    assert JvmAgent(cluster.runtime, node.container).rules() is not None
    assert clean_up(cluster, deployed, had_agents=True).restarted == (node.name,)
    assert JvmAgent(cluster.runtime, node.container).rules() is None


def test_a_process_with_rules_of_the_topology_is_started_anew(
    cluster: Cluster, service: Service
) -> None:
    node = cluster.node("flink/taskmanager-1")
    group = node.spec.group.model_copy(update={"rules": ("RULE counts in the process",)})
    cluster.nodes[node.name] = replace(node, spec=replace(node.spec, group=group))
    deployed = read_state(cluster)
    assert clean_up(cluster, deployed, had_agents=False).restarted == (node.name,)


def test_a_process_that_counts_jobs_is_started_anew(
    cluster: Cluster, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a real cluster it is the SQL gateway, which this one does not have."""
    assert FlinkEngine.counting_roles == ("gateway",)
    monkeypatch.setattr(FlinkEngine, "counting_roles", ("jobmanager",))
    deployed = read_state(cluster)
    assert clean_up(cluster, deployed, had_agents=False).restarted == ("flink/jobmanager-1",)


def test_contents_that_remain_are_named(cluster: Cluster, service: Service) -> None:
    deployed = read_state(cluster)
    service.topics.add("of the run")
    service.is_stuck = True
    with pytest.raises(NotReadyInTime, match="flink: topics: of the run was not there"):
        clean_up(cluster, deployed, had_agents=False)


class Slow(Service):
    """A service whose topics are gone some reads after their removal."""

    reads = 0

    def contents(self, cluster: Cluster, service: str) -> Contents:
        self.reads += 1
        if self.reads > 20:
            self.topics = {"kept"}
        return super().contents(cluster, service)


def test_what_goes_in_its_own_time_is_awaited(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()
    for module in (state, cleaning):
        monkeypatch.setattr(module, "cleaner", lambda cluster, name: slow)
    deployed = read_state(cluster)
    slow.is_stuck = True
    slow.topics.add("of the run")
    assert clean_up(cluster, deployed, had_agents=False).restarted == ()
    assert slow.reads > 20


def test_a_missing_part_is_a_difference() -> None:
    before = contents_of({"hdfs": {"paths": frozenset({"/flink"})}})
    missing = {"hdfs": "paths: /flink is missing"}
    assert differences(before, contents_of({"hdfs": {"paths": frozenset()}})) == missing
    assert differences(before, contents_of({})) == missing
    added = {"hdfs": "paths: /flink was not there after the deployment"}
    assert differences(contents_of({}), before) == added


def contents_of(contents: Mapping[str, Contents]) -> ClusterState:
    return ClusterState(contents=contents, used_mb={})


def test_more_space_in_use_on_a_disk_is_a_difference() -> None:
    before = ClusterState(contents={}, used_mb={"kafka/broker-1": 12})
    same = ClusterState(contents={}, used_mb={"kafka/broker-1": 12 + MORE_MB})
    assert differences(before, same) == {}
    assert differences(same, before) == {}
    more = ClusterState(contents={}, used_mb={"kafka/broker-1": 13 + MORE_MB})
    assert differences(before, more) == {
        "disk of kafka/broker-1": "23 MB are in use, 12 after the deployment"
    }


def test_the_space_in_use_is_read_from_the_disks(
    cluster: Cluster, service: Service, tmp_path: Path
) -> None:
    deployed = read_state(cluster)
    assert deployed.used_mb == {"hdfs/datanode-1": 0, "hdfs/datanode-2": 0}
    assert clean_up(cluster, deployed, had_agents=False).equal["disks"] == 2
    leave(cluster, tmp_path, "disk_full")
    with pytest.raises(NotReadyInTime, match=r"disk of hdfs/datanode-2: \d+ MB are in use"):
        clean_up(cluster, deployed, had_agents=False)


@pytest.mark.parametrize("back", [False, True])
def test_a_node_without_network_is_started_again_in_a_sandbox_that_runs(
    cluster: Cluster, service: Service, back: bool
) -> None:
    deployed, node = read_state(cluster), cluster.node("kafka/broker-1")
    cluster.runtime.kill(node.sandbox)
    if back:
        cluster.runtime.start_again(node.sandbox)
    assert "networks: lost was not there" in str(first_difference(deployed, read_state(cluster)))
    assert clean_up(cluster, deployed, had_agents=False).restarted == (node.name,)
    assert not has_lost_network(cluster, node, cluster.state(node))


def test_a_node_that_gets_its_network_back_is_ready_before_its_service_is_cleaned(
    cluster: Cluster, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed, steps = read_state(cluster), list[str]()
    cluster.runtime.kill(cluster.node("kafka/broker-1").sandbox)
    monkeypatch.setattr(cluster, "pending", lambda: steps.append("ready"))
    monkeypatch.setattr(service, "clean", lambda *args: steps.append("clean"))
    clean_up(cluster, deployed, had_agents=False)
    assert steps == ["ready", *["clean"] * len(cluster.topology.services), "ready"]


@pytest.mark.parametrize("name", [PROXY_NODE, KEEPER_NODE])
def test_a_helper_that_was_started_anew_is_named(
    cluster: Cluster, service: Service, name: str
) -> None:
    """What it held is lost: the proxies, or the disks of the nodes."""
    deployed = read_state(cluster)
    (helper,) = cluster.runtime.find({labels.NODE: name})
    cluster.runtime.kill(helper.id)
    cluster.runtime.start_again(helper.id)
    assert f"{name}: helpers: running" in str(first_difference(deployed, read_state(cluster)))


def test_a_helper_that_was_removed_is_named(cluster: Cluster, service: Service) -> None:
    deployed = read_state(cluster)
    (helper,) = cluster.runtime.find({labels.NODE: PROXY_NODE})
    cluster.runtime.kill(helper.id)
    assert "helpers: exited since" in str(first_difference(deployed, read_state(cluster)))
    cluster.runtime.remove(helper.id)
    assert differences(deployed, read_state(cluster))[PROXY_NODE].endswith("is missing")


def test_a_proxy_that_is_missing_is_named(cluster: Cluster, service: Service) -> None:
    deployed, path = read_state(cluster), cluster.links.paths[0]
    assert cluster.links.proxy is not None
    cluster.links.proxy.delete(path.name)
    found = first_difference(deployed, read_state(cluster))
    assert found is not None
    assert found.startswith(f"the links: proxies: {path.name} from ")
    assert found.endswith("is missing")


def test_a_proxy_that_is_turned_off_is_named(
    cluster: Cluster, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed, proxy = read_state(cluster), cluster.links.proxy
    assert proxy is not None
    off = {name: {**known, "enabled": False} for name, known in proxy.proxies().items()}
    monkeypatch.setattr(proxy, "proxies", lambda: off)
    assert "enabled: False was not there" in str(first_difference(deployed, read_state(cluster)))


@pytest.mark.parametrize("paused", ["process", "sandbox"])
def test_a_node_that_is_paused_has_its_network_until_its_sandbox_ends(
    cluster: Cluster, paused: str
) -> None:
    node = cluster.node("kafka/broker-1")
    cluster.runtime.pause(node.container if paused == "process" else node.sandbox)
    assert not has_lost_network(cluster, node, cluster.state(node))
    cluster.runtime.kill(node.sandbox)
    cluster.runtime.start_again(node.sandbox)
    assert has_lost_network(cluster, node, cluster.state(node))


def test_a_process_that_has_ended_lost_no_network_with_its_sandbox(cluster: Cluster) -> None:
    """It gets the network of the sandbox when it is started."""
    node = cluster.node("kafka/broker-1")
    cluster.runtime.kill(node.container)
    cluster.runtime.kill(node.sandbox)
    cluster.runtime.start_again(node.sandbox)
    assert not has_lost_network(cluster, node, cluster.state(node))


def test_a_node_without_a_namespace_has_no_rules(cluster: Cluster, service: Service) -> None:
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    runtime.kill(cluster.node("kafka/broker-1").sandbox)
    now = read_state(cluster)
    assert now.contents["kafka/broker-1"]["sandboxes"] == {"exited"}
    assert now.contents["kafka/broker-1"]["packet rules"] == frozenset()


def test_no_service_can_take_the_place_of_the_links() -> None:
    """A service may be called `links`; its contents would replace the state of the links."""
    with pytest.raises(ValidationError):
        TypeAdapter(Name).validate_python(state.LINKS)
