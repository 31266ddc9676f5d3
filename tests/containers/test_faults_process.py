"""Process faults on a real small HDFS, whose nodes are JVMs with memory limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster, attach_cluster, remove_cluster, start_cluster
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker import kernel
from streamquake.cluster.runtime.docker.freezer import freezer_of
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.labels import OWNER, owner_of_this_process
from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.fault import Fault, faults
from streamquake.faults.injection.injection import evidence_now
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.topologies.model import Topology
from tests.injecting import FaultInjector
from tests.pace import at_pace, wait_until
from tests.tiers import others_nightly

pytestmark = pytest.mark.container

HDFS = Topology.model_validate(
    {
        "name": "small-hdfs",
        "services": {"hdfs": {"engine": "hdfs", "nodes": {"namenode": 1, "datanode": 2}}},
    }
)

NODE = "hdfs/datanode-2"
SAME_HOST = sys.platform == "linux" and os.geteuid() == 0
"""Whether this process can access the containers' processes."""


@pytest.fixture(scope="module")
def hdfs(docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    ensure_images(HDFS, docker_runtime.images(), print)
    run_id = f"test-process-{os.getpid()}"
    cluster = Cluster(run_id=run_id, topology=HDFS, runtime=docker_runtime, clock=SystemClock())
    try:
        start_cluster(
            cluster, tags={OWNER: owner_of_this_process()}, limit_s=at_pace(120), show_message=print
        )
        yield cluster
    finally:
        assert remove_cluster(docker_runtime, run_id) == []


@pytest.fixture
def cluster(hdfs: Cluster) -> Cluster:
    wait_until(hdfs.pending, what="HDFS ready", limit_s=120, clock=hdfs.clock)
    return hdfs


@pytest.fixture
def injector(cluster: Cluster, tmp_path: Path) -> FaultInjector:
    return FaultInjector(
        cluster, IntentLog(tmp_path / "intents.jsonl"), limit_s=at_pace(60), at=NODE
    )


FAULTS: dict[str, dict[str, Any]] = {
    "kill": {},
    "kill-TERM": {"signal": "TERM"},
    "pause": {},
    "stop": {},
    "sigstop": {},
    "crash_loop": {"lives_s": 0.3},
    "oom_heap": {},
    "oom_container": {},
}
IN_MAKE_TEST = ("kill", "pause", "sigstop", "crash_loop", "oom_container")
"""The ways to end or stop a process; the other faults use one of them with another value."""
SIGNS: dict[str, dict[str, Any]] = {
    "kill": {"exit_code": 137},
    "kill-TERM": {"exit_code": 143},
    "pause": {"status": "paused"},
    "stop": {"ended_by": "TERM"},
    "sigstop": {"process_state": "T"},
    "crash_loop": {"made_to_fail": True},
    "oom_heap": {"exit_code": 3},
    "oom_container": {"exit_code": 137, "oom_killed": True},
}


def build_fault(name: str) -> Fault:
    return faults[name.partition("-")[0]](**FAULTS[name])


@pytest.mark.parametrize("name", others_nightly(FAULTS, IN_MAKE_TEST))
def test_a_fault_takes_effect_and_another_process_heals_it(
    name: str, cluster: Cluster, injector: FaultInjector, tmp_path: Path
) -> None:
    _, injected = injector.inject_fault(build_fault(name))

    assert injected.done, injected.reason
    seen = injected.evidence[NODE]
    assert SIGNS[name].items() <= seen.items(), seen
    other = attach_cluster(
        run_id=cluster.run_id, topology=HDFS, runtime=DockerRuntime(), clock=SystemClock()
    )
    (intent,) = IntentLog(tmp_path / "intents.jsonl").open_intents()
    assert evidence_now(intent, other)[NODE].in_effect
    FaultInjector(other, injector.log, limit_s=at_pace(60)).heal(intent)
    assert evidence_now(intent, other)[NODE].healed


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize(
    "name", others_nightly(["pause", "sigstop", "crash_loop", "oom_heap"], IN_MAKE_TEST)
)
def test_a_fault_is_healed_after_its_node_died_and_restarted(
    name: str, cluster: Cluster, injector: FaultInjector
) -> None:
    node = cluster.node(NODE)
    intent, injected = injector.inject_fault(build_fault(name))
    assert injected.done, injected.reason

    cluster.runtime.unpause(node.container)
    cluster.runtime.kill(node.container)
    cluster.start_again(node)

    healed = injector.undo(intent)
    assert healed.done, healed.reason
    assert evidence_now(intent, cluster)[NODE].healed


def test_a_signal_that_the_process_survives_is_not_in_effect(injector: FaultInjector) -> None:
    intent, injected = injector.inject_fault(Kill(signal="QUIT"), limit_s=1)

    assert not injected.done
    assert "running" in injected.reason
    assert injector.undo(intent).done


def test_the_nodes_of_a_role_are_restarted_one_after_the_other(
    cluster: Cluster, injector: FaultInjector
) -> None:
    names = [node.name for node in cluster.of_role("hdfs/datanode")]
    intent, injected = injector.inject_fault(faults["rolling_restart"](), "all of hdfs/datanode")

    assert injected.done, injected.reason
    first, second = (injected.evidence[name]["started_at"] for name in names)
    assert first < second
    wait_until(cluster.pending, what="HDFS ready", limit_s=60, clock=cluster.clock)
    assert injector.undo(intent).done


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("name", ["pause", "sigstop"])
def test_faults_use_the_engine_if_the_containers_have_another_kernel(
    name: str, injector: FaultInjector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_in_control_group", lambda pid, container: False)
    monkeypatch.setattr("streamquake.cluster.runtime.docker.processes.freezer_of", lambda *_: None)

    intent, injected = injector.inject_fault(faults[name]())

    assert injected.done, injected.reason
    assert injected.evidence["watched"] == "api"
    assert injector.undo(intent).done


@pytest.mark.skipif(not SAME_HOST, reason="only root of the same host can write to the freezer")
def test_a_container_frozen_without_the_engine_is_thawed(cluster: Cluster) -> None:
    container = cluster.node(NODE).container
    freezer = freezer_of(container, cluster.runtime.inspect(container).pid)
    assert freezer is not None
    freezer.set(True, cluster.clock)
    assert cluster.runtime.inspect(container).status == ContainerStatus.RUNNING

    cluster.runtime.unpause(container)

    assert not freezer.is_frozen()


@pytest.mark.skipif(not SAME_HOST, reason="only root of the same host can write to the freezer")
def test_a_container_that_only_the_engine_regards_as_paused_is_unpaused(cluster: Cluster) -> None:
    container = cluster.node(NODE).container
    cluster.runtime.pause(container)
    freezer = freezer_of(container, cluster.runtime.inspect(container).pid)
    assert freezer is not None
    freezer.set(False, cluster.clock)

    cluster.runtime.unpause(container)

    assert cluster.runtime.inspect(container).status == ContainerStatus.RUNNING
