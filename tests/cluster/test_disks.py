"""Disks of a fixed size for nodes, on the fake runtime."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.disks import Disks
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult, ResponseLost
from tests.fakes import WIDE


def test_the_devices_are_read_again_when_the_engine_loses_the_output() -> None:
    commands: list[Sequence[str]] = []

    def answer(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        commands.append(argv)
        if len(commands) == 1:
            raise ResponseLost("the engine closed its output")
        return ExecResult(exit_code=0, output="hdfs-datanode-1 /dev/loop7\n")

    runtime = FakeRuntime(FakeClock())
    runtime.on_exec.append(answer)
    cluster = Cluster(run_id="r1", topology=WIDE, runtime=runtime, clock=runtime.clock)
    run_labels = {labels.RUN: "r1"}
    cluster.disks.start(run_labels)
    datanode = next(node for node in WIDE.nodes() if node.name == "hdfs/datanode-1")
    assert cluster.disks.device_of(datanode) == "/dev/loop7"

    commands.clear()
    found = Disks(cluster)
    found.find()
    assert found.device_of(datanode) == "/dev/loop7"
