"""Resource faults on a real HDFS, whose second DataNode has its own disk and clock. They are
verified in effect and healed, also across a restart, and no disk is left behind."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.node import Node
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.reports.record.run_folder import new_run_id
from streamquake.topologies.model import Topology
from tests.injecting import FaultInjector, build_fault
from tests.pace import at_pace, wait_until

pytestmark = pytest.mark.container

TOPOLOGY = Topology.model_validate(
    {
        "name": "resources",
        "services": {
            "hdfs": {
                "engine": "hdfs",
                "nodes": {
                    "namenode": 1,
                    "datanode": {"count": 2, "disk_mb": 512, "clock": "adjustable"},
                },
            }
        },
    }
)
INJECTIONS = [
    ("cpu_limit", {"cpus": 0.2}),
    ("memory_limit", {"headroom_mb": 64}),
    ("fd_limit", {"spare": 2}),
    ("disk_full", {"leave_mb": 0}),
    pytest.param("disk_full", {"leave_mb": 16}, marks=pytest.mark.nightly),
    ("slow_disk", {"kb_per_s": 256}),
    ("clock_skew", {"offset_s": 90}),
    pytest.param("clock_skew", {"offset_s": -7200.5}, marks=pytest.mark.nightly),
]
NODE = "hdfs/datanode-2"


class Bench(FaultInjector):
    """The cluster, and a log of the injections into its second DataNode."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(cluster, IntentLog(folder / "intents.jsonl"), limit_s=at_pace(60), at=NODE)

    @property
    def node(self) -> Node:
        return self.cluster.node(NODE)


@pytest.fixture(scope="module")
def bench(
    docker_runtime: DockerRuntime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    cluster = Cluster(
        run_id=new_run_id(), topology=TOPOLOGY, runtime=docker_runtime, clock=SystemClock()
    )
    tags = {labels.OWNER: labels.owner_of_this_process()}
    try:
        start_cluster(cluster, tags=tags, limit_s=at_pace(120), show_message=print)
        yield Bench(cluster, tmp_path_factory.mktemp("resources"))
    finally:
        assert remove_cluster(docker_runtime, cluster.run_id) == []


@pytest.mark.nightly_after(4)
@pytest.mark.parametrize(("name", "params"), INJECTIONS)
def test_a_fault_takes_effect_and_is_healed_twice(
    name: str, params: dict[str, float], bench: Bench
) -> None:
    bench.took_effect(build_fault(name, **params))


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize(("name", "params"), INJECTIONS[::2])
def test_a_fault_is_healed_while_its_node_is_down(
    name: str, params: dict[str, float], bench: Bench
) -> None:
    intent, injected = bench.inject_fault(build_fault(name, **params))
    assert injected.done, injected.reason
    bench.cluster.runtime.kill(bench.node.container)
    try:
        healed = bench.undo(intent)
        assert healed.done, healed.reason
    finally:
        bench.cluster.start_again(bench.node)
    wait_until(bench.cluster.pending, what="node ready", limit_s=60, clock=bench.cluster.clock)
    again = bench.undo(intent)
    assert again.done, again.reason


def test_a_limit_and_a_full_disk_survive_a_restart(bench: Bench) -> None:
    injected = [
        bench.inject_fault(build_fault("cpu_limit", cpus=0.5)),
        bench.inject_fault(build_fault("disk_full")),
    ]
    assert all(done.done for _, done in injected)
    bench.cluster.runtime.kill(bench.node.container)
    bench.cluster.start_again(bench.node)
    try:
        for intent, _ in injected:
            # A limit throttles a process only while the process needs more.
            wait_until(
                partial(_missing, bench, intent),
                what=f"{intent.fault} again",
                limit_s=60,
                clock=bench.cluster.clock,
                every_s=0.2,
            )
    finally:
        for intent, _ in injected:
            assert bench.undo(intent).done
    wait_until(bench.cluster.pending, what="HDFS ready", limit_s=60, clock=bench.cluster.clock)


def test_a_disk_stays_full_where_its_node_deletes_files(bench: Bench) -> None:
    bench.cluster.disks.run(bench.node.spec, "fallocate -l 32M own-file")
    with bench.in_effect(build_fault("disk_full")) as (intent, _):
        bench.cluster.disks.run(bench.node.spec, "rm own-file")
        wait_until(
            partial(_missing, bench, intent),
            what="the disk full again",
            limit_s=60,
            clock=bench.cluster.clock,
            every_s=0.2,
        )


def _missing(bench: Bench, intent: Intent) -> str | None:
    baseline = intent.baselines[bench.node.name]
    seen = intent.build_fault().evidence(bench.cluster, bench.node, baseline)
    return None if seen.in_effect else str(seen)


def test_a_jvm_has_the_skewed_clock(bench: Bench) -> None:
    """A thread dump begins with the JVM's time and has hundreds of lines."""
    ahead = timedelta(days=365)

    def pending() -> str | None:
        month = f"{datetime.now(UTC) + ahead:%Y-%m}-"
        bench.cluster.runtime.kill(bench.node.container, "QUIT")
        log = bench.cluster.runtime.logs(bench.node.container, tail=10_000)
        message = [line for line in log.splitlines() if line.startswith(month)]
        return None if message else f"no dump of {month}"

    with bench.in_effect(build_fault("clock_skew", offset_s=ahead.total_seconds())):
        wait_until(pending, what="a dump", limit_s=60, clock=bench.cluster.clock, every_s=0.5)


def test_no_file_can_be_opened_without_spare_descriptors(bench: Bench) -> None:
    """The kernel completes a client's handshake, but the DataNode cannot accept the connection and
    logs the reason."""

    def pending() -> str | None:
        bench.cluster.runtime.in_network_namespace(
            bench.node.container, ["bash", "-c", f": < /dev/tcp/{bench.node.ip}/9866"]
        )
        log = bench.cluster.runtime.logs(bench.node.container, tail=200)
        return None if "Too many open files" in log else "no error logged"

    with bench.in_effect(build_fault("fd_limit", spare=0)):
        wait_until(pending, what="EMFILE", limit_s=60, clock=bench.cluster.clock, every_s=0.5)


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("keeper_first", [True, False])
def test_no_loop_device_is_left_after_the_containers_are_removed(
    keeper_first: bool, docker_runtime: DockerRuntime
) -> None:
    run_id = new_run_id()
    cluster = Cluster(run_id=run_id, topology=TOPOLOGY, runtime=docker_runtime, clock=SystemClock())
    marks = {labels.RUN: run_id, labels.OWNER: labels.owner_of_this_process()}
    try:
        cluster.disks.start(marks)
        spec = next(node for node in TOPOLOGY.nodes() if node.group.disk_mb)
        _, disks = cluster.disks.bound(spec, ["/data"])
        node = docker_runtime.start(
            ContainerSpec(
                name=cluster.container_name("node"),
                image=recipe("toolbox").tag,
                command=("sleep", "600"),
                labels=marks,
                disks=disks,
            )
        )
        own_devices = {line for line in _loop_devices() if line.split()[0] == disks["/data"]}
        assert len(own_devices) == 1
        (keeper,) = (c.id for c in docker_runtime.find(marks) if c.id != node)
        for container in (keeper, node) if keeper_first else (node, keeper):
            assert own_devices <= _loop_devices()
            docker_runtime.remove(container)
        wait_until(
            lambda: f"still there: {left}" if (left := own_devices & _loop_devices()) else None,
            what="loop device removed",
            limit_s=30,
            clock=cluster.clock,
            every_s=0.1,
        )
    finally:
        remove_cluster(docker_runtime, run_id)


def _loop_devices() -> set[str]:
    """The loop devices in use, each with the inode of its file, since device names are reused."""
    command = ["losetup", "--list", "--noheadings", "--output", "NAME,BACK-INO"]
    recorded = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line for line in recorded.splitlines() if line.strip()}
