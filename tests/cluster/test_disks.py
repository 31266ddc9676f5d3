"""Disks of their own for nodes, on the fake runtime."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.disks import Disks
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult, ResponseLost
from tests.fakes import WIDE


def test_the_devices_are_asked_for_again_when_the_engine_loses_the_answer() -> None:
    requested: list[Sequence[str]] = []

    def answers(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        requested.append(argv)
        if len(requested) == 1:
            raise ResponseLost("the engine closed its output")
        return ExecResult(exit_code=0, output="hdfs-datanode-1 /dev/loop7\n")

    runtime = FakeRuntime(FakeClock())
    runtime.on_exec.append(answers)
    cluster = Cluster(run_id="r1", topology=WIDE, runtime=runtime, clock=runtime.clock)
    marks = {labels.RUN: "r1"}
    cluster.disks.start(marks)
    datanode = next(node for node in WIDE.nodes() if node.name == "hdfs/datanode-1")
    assert cluster.disks.device_of(datanode) == "/dev/loop7"

    requested.clear()
    found = Disks(cluster)
    found.find()
    assert found.device_of(datanode) == "/dev/loop7"
