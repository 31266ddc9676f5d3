"""The rolling upgrade on a real HDFS: its data on disk survives the replacement of every
container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster, attach_cluster, remove_cluster, start_cluster
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.duplicate_containers import MEANWHILE
from streamquake.cluster.runtime.labels import NODE, OWNER, RUN, owner_of_this_process
from streamquake.cluster.runtime.runtime import ContainerSpec
from streamquake.faults.catalogue.rolling_upgrade import RollingUpgrade
from streamquake.faults.injection.injection import evidence_now
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.topologies.model import Topology
from tests.injecting import FaultInjector
from tests.pace import at_pace, wait_until

pytestmark = [pytest.mark.container, pytest.mark.nightly]

HDFS = Topology.model_validate(
    {
        "name": "hdfs-on-disks",
        "services": {
            "hdfs": {
                "engine": "hdfs",
                "nodes": {"namenode": 1, "datanode": {"count": 2, "disk_mb": 128}},
            }
        },
    }
)
ROLE = "hdfs/datanode"
PUT = "echo content of the file | JVM_HEAP_MB=128 hdfs dfs -put - /kept"
READ = "JVM_HEAP_MB=128 hdfs dfs -cat /kept 2>&1"


@pytest.fixture(scope="module")
def cluster(docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    ensure_images(HDFS, docker_runtime.images(), print)
    run_id = f"test-upgrade-{os.getpid()}"
    cluster = Cluster(run_id=run_id, topology=HDFS, runtime=docker_runtime, clock=SystemClock())
    try:
        start_cluster(
            cluster, tags={OWNER: owner_of_this_process()}, limit_s=at_pace(120), show_message=print
        )
        assert "content of the file" in _in_namenode(cluster, f"{PUT}; {READ}")
        yield cluster
    finally:
        assert remove_cluster(docker_runtime, run_id) == []


def _in_namenode(cluster: Cluster, script: str) -> str:
    namenode = cluster.node("hdfs/namenode-1").container
    return cluster.runtime.exec(namenode, ["sh", "-c", script], timeout_s=180).output


def _images(cluster: Cluster) -> set[str]:
    return {cluster.state(node).image for node in cluster.of_role(ROLE)}


def _attached(cluster: Cluster) -> Cluster:
    return attach_cluster(
        run_id=cluster.run_id, topology=HDFS, runtime=DockerRuntime(), clock=SystemClock()
    )


def test_a_file_survives_the_upgrade_and_its_rollback_by_another_process(
    cluster: Cluster, tmp_path: Path
) -> None:
    log = IntentLog(tmp_path / "intents.jsonl")
    before = cluster.of_role(ROLE)
    (usual,) = _images(cluster)
    # The same image under another name, so that it exists wherever the first one does.
    other_name = cluster.state(before[0]).image_id

    intent, injected = FaultInjector(cluster, log, limit_s=at_pace(60)).inject_fault(
        RollingUpgrade(image=other_name), f"all of {ROLE}"
    )

    assert injected.done, injected.reason
    after = cluster.of_role(ROLE)
    assert {node.container for node in before}.isdisjoint(node.container for node in after)
    assert [(n.ip, n.host_ports) for n in before] == [(n.ip, n.host_ports) for n in after]
    assert _images(cluster) == {other_name}
    assert "content of the file" in _in_namenode(cluster, READ)
    other = _attached(cluster)
    FaultInjector(other, log, limit_s=at_pace(60)).heal(intent)
    wait_until(other.pending, what="HDFS ready", limit_s=60, clock=other.clock)
    assert _images(other) == {usual}
    assert "content of the file" in _in_namenode(other, READ)


@pytest.mark.nightly
def test_an_interrupted_replacement_is_repaired(cluster: Cluster, tmp_path: Path) -> None:
    log = IntentLog(tmp_path / "intents.jsonl")
    here = _attached(cluster)
    node = here.node("hdfs/datanode-1")
    intent = FaultInjector(here, log, limit_s=at_pace(60)).intend(RollingUpgrade(), node.name)
    twin = ContainerSpec(
        name=here.container_name(node.spec.host) + MEANWHILE,
        image=here.state(node).image,
        labels={RUN: here.run_id, NODE: node.name},
        network=here.network,
        ip=node.ip,
        volumes_from=node.container,
    )
    here.runtime.create(replace(twin, command=("datanode",)))
    here.runtime.kill(node.container)

    other = _attached(cluster)
    healed = FaultInjector(other, log, limit_s=at_pace(60)).undo(intent)

    assert healed.done, healed.reason
    assert evidence_now(intent, other)[node.name].observations["containers"] == 1
    assert other.node(node.name).container == node.container
    wait_until(other.pending, what="HDFS ready", limit_s=60, clock=other.clock)
    assert "content of the file" in _in_namenode(other, READ)
