"""The resource faults: rejected parameters, limits without an effect, and partial faults."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ExecResult, ResponseLost
from streamquake.faults.catalogue.clock_skew import READ_CLOCK, ClockSkew
from streamquake.faults.catalogue.cpu_limit import BUSY, CpuLimit
from streamquake.faults.catalogue.disk_full import EMPTY, FILL
from streamquake.faults.catalogue.fd_limit import INSPECT, LIMIT, FdLimit, OpenFiles
from streamquake.faults.catalogue.memory_limit import MemoryLimit
from streamquake.faults.catalogue.slow_disk import SlowDisk
from streamquake.faults.fault import Evidence, Fault, faults
from streamquake.faults.mechanisms.disk_io import WRITE_ON_DEVICE
from streamquake.harness.experiment.validation import fault_target_problem
from streamquake.reports.record.event import PROBE_ALONE, SYSTEM
from tests.fakes import TOPOLOGY, WIDE, fake_cluster


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


@pytest.fixture
def node(cluster: Cluster) -> Node:
    return cluster.node("hdfs/datanode-2")


def runtime_of(cluster: Cluster) -> FakeRuntime:
    assert isinstance(cluster.runtime, FakeRuntime)
    return cluster.runtime


def injected(fault: Fault, cluster: Cluster, node: Node) -> Evidence:
    baseline = fault.baseline(cluster, node)
    fault.inject(cluster, node)
    return fault.evidence(cluster, node, baseline)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("cpu_limit", {}, "cpus"),
        ("cpu_limit", {"cpus": 0}, "greater than or equal to 0.01"),
        ("memory_limit", {}, "either `memory_mb` or `headroom_mb`"),
        ("memory_limit", {"memory_mb": 64, "headroom_mb": 8}, "either `memory_mb`"),
        ("fd_limit", {"spare": -1}, "greater than or equal to 0"),
        ("slow_disk", {"kb_per_s": 1}, "greater than or equal to 32"),
        ("clock_skew", {"offset_s": 0.5}, "at least 1 s ahead or behind, got 0.5"),
    ],
)
def test_invalid_parameters_are_rejected(name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        faults[name](**params)


@pytest.mark.parametrize(
    ("name", "next_step"),
    [("disk_full", "disk_mb"), ("slow_disk", "disk_mb"), ("clock_skew", "clock: adjustable")],
)
def test_the_problem_of_a_group_names_the_missing_declaration(name: str, next_step: str) -> None:
    role_problem = fault_target_problem(faults[name], "one of flink/taskmanager", TOPOLOGY)
    assert role_problem is not None
    assert next_step in role_problem


def test_a_cpu_limit_that_no_process_reaches_is_not_in_effect(cluster: Cluster, node: Node) -> None:
    def idle(_: object, argv: object) -> ExecResult | None:
        return ExecResult(exit_code=0, output="") if BUSY in argv else None  # type: ignore[operator]

    runtime_of(cluster).on_exec.insert(0, idle)
    evidence = injected(CpuLimit(cpus=0.2), cluster, node)
    assert evidence.observations["cpus"] == 0.2
    assert not evidence.in_effect
    assert not evidence.healed


@pytest.mark.parametrize(("busy", "whose"), [(True, SYSTEM), (False, PROBE_ALONE)])
def test_a_cpu_limit_records_whose_work_was_throttled(
    cluster: Cluster, node: Node, monkeypatch: pytest.MonkeyPatch, busy: bool, whose: str
) -> None:
    usage, polls = cluster.runtime.usage, iter(range(100))
    if busy:
        monkeypatch.setattr(
            cluster.runtime, "usage", lambda name: replace(usage(name), throttled=next(polls))
        )

    evidence = injected(CpuLimit(cpus=0.2), cluster, node)

    assert evidence.in_effect
    assert evidence.observations["disturbed"] == whose


def test_a_cpu_limit_above_the_declared_one_is_rejected(cluster: Cluster, node: Node) -> None:
    group = node.spec.group.model_copy(update={"cpus": 0.5})
    declared = replace(node, spec=replace(node.spec, group=group))
    with pytest.raises(ValueError, match=r"expected fewer processors than its own 0\.5"):
        CpuLimit(cpus=1).inject(cluster, declared)
    fault = CpuLimit(cpus=0.2)
    fault.inject(cluster, declared)
    fault.heal(cluster, declared, {})
    assert cluster.runtime.usage(node.container).cpus == 0.5


def test_a_memory_limit_that_is_no_lower_is_rejected(cluster: Cluster, node: Node) -> None:
    with pytest.raises(ValueError, match="less than its own limit of 1024 MB, got 2048 MB"):
        MemoryLimit(memory_mb=2048).inject(cluster, node)


def test_an_out_of_memory_kill_proves_a_memory_limit(cluster: Cluster, node: Node) -> None:
    fault = MemoryLimit(memory_mb=256)
    baseline = fault.baseline(cluster, node)
    fault.inject(cluster, node)
    runtime_of(cluster).die(node.container, 137, oom_killed=True)
    evidence = fault.evidence(cluster, node, baseline)
    assert evidence.in_effect
    fault.heal(cluster, node, baseline)
    assert fault.evidence(cluster, node, baseline).healed


@pytest.mark.parametrize(("spare", "limit"), [(0, 2), (1, 4), (3, 6)])
def test_a_limit_of_files_counts_free_descriptor_numbers(spare: int, limit: int) -> None:
    files = OpenFiles(soft=1024, hard=1024, numbers=frozenset({0, 1, 3, 9}))
    assert files.limit_that_leaves(spare) == limit
    limited = OpenFiles(soft=limit, hard=1024, numbers=files.numbers)
    assert limited.left == spare


def test_a_filler_is_not_in_effect_while_writes_succeed(cluster: Cluster, node: Node) -> None:
    fault = faults["disk_full"]()
    baseline = fault.baseline(cluster, node)
    cluster.disks.run(node.spec, FILL, str(400 * 1024))
    evidence = fault.evidence(cluster, node, baseline)
    assert evidence.observations["filler"]
    assert not evidence.in_effect
    assert not evidence.healed
    assert evidence.ended


def test_whether_a_disk_is_full_for_a_node_that_is_down_is_not_known(
    cluster: Cluster, node: Node
) -> None:
    fault = faults["disk_full"]()
    cluster.disks.run(node.spec, FILL, str(400 * 1024))
    cluster.runtime.kill(node.container)
    evidence = fault.evidence(cluster, node, {})
    assert evidence.observations["as"] == "keeper"
    assert not evidence.in_effect
    assert not evidence.ended


def test_a_full_disk_is_healed_while_its_node_is_down(cluster: Cluster, node: Node) -> None:
    fault = faults["disk_full"]()
    assert injected(fault, cluster, node).in_effect
    cluster.runtime.kill(node.container)
    evidence = fault.evidence(cluster, node, {})
    assert evidence.in_effect
    assert evidence.observations["as"] == "keeper"
    fault.heal(cluster, node, {})
    assert fault.evidence(cluster, node, {}).healed


def test_a_failed_change_of_a_disk_raises_its_output(cluster: Cluster, node: Node) -> None:
    def broken(_: object, argv: Any) -> ExecResult | None:
        if EMPTY in argv[2]:
            return ExecResult(exit_code=1, output="rm: Read-only file system")
        return None

    runtime_of(cluster).on_exec.insert(0, broken)
    with pytest.raises(ContainerError, match="the disk of hdfs/datanode-2: rm: Read-only"):
        faults["disk_full"]().heal(cluster, node, {})


@pytest.mark.parametrize(("losses", "reported"), [(1, True), (2, False)])
def test_a_command_whose_output_was_lost_is_repeated_once(
    losses: int, reported: bool, cluster: Cluster, node: Node
) -> None:
    lost = iter(range(losses))

    def lose_output(_: object, argv: Any) -> ExecResult | None:
        if next(lost, None) is not None:
            raise ResponseLost(f"{argv[0]}: closed before all of it was read")
        return None

    fault = ClockSkew(offset_s=60)
    fault.inject(cluster, node)
    runtime_of(cluster).on_exec.insert(0, lose_output)
    with nullcontext() if reported else pytest.raises(ResponseLost):
        assert fault.evidence(cluster, node, {}).in_effect


def test_a_clock_that_moved_halfway_is_neither_in_effect_nor_healed(
    cluster: Cluster, node: Node
) -> None:
    fault = ClockSkew(offset_s=60)
    baseline = fault.baseline(cluster, node)
    ClockSkew(offset_s=30).inject(cluster, node)
    evidence = fault.evidence(cluster, node, baseline)
    assert evidence.observations["offset_s"] == 30
    assert not evidence.in_effect
    assert not evidence.healed


def test_a_baseline_clock_that_was_read_late_widens_the_tolerance(
    cluster: Cluster, node: Node
) -> None:
    def late(_: object, argv: Sequence[str]) -> ExecResult | None:
        if argv[2] != READ_CLOCK:
            return None
        runtime_of(cluster).on_exec.remove(late)
        reported_ns = cluster.clock.epoch_ns()
        cluster.clock.sleep(4)
        return ExecResult(exit_code=0, output=f"{reported_ns}\n")

    fault = ClockSkew(offset_s=60)
    runtime_of(cluster).on_exec.insert(0, late)
    baseline = fault.baseline(cluster, node)
    assert baseline["offset_s"] == -2
    fault.inject(cluster, node)
    assert fault.evidence(cluster, node, baseline).in_effect
    fault.heal(cluster, node, baseline)
    assert fault.evidence(cluster, node, baseline).healed


def test_one_slow_write_before_the_fault_does_not_hide_a_slow_disk(
    cluster: Cluster, node: Node
) -> None:
    def slow(_: object, argv: Sequence[str]) -> ExecResult | None:
        if argv[2] != WRITE_ON_DEVICE:
            return None
        runtime_of(cluster).on_exec.remove(slow)
        return ExecResult(exit_code=0, output="131072 bytes copied, 2.5 s, 52 kB/s")

    runtime_of(cluster).on_exec.insert(0, slow)
    assert injected(SlowDisk(kb_per_s=256), cluster, node).in_effect


def test_the_limit_is_set_again_when_a_file_was_closed_meanwhile(
    cluster: Cluster, node: Node
) -> None:
    limits, files = [1024], set(range(60))

    def closing(_: object, argv: Sequence[str]) -> ExecResult | None:
        if argv[2] == LIMIT:
            limits.append(int(argv[4]))
            files.discard(3)
        elif argv[2] != INSPECT:
            return None
        numbers = "\n".join(map(str, files))
        return ExecResult(
            exit_code=0, output=f"Max open files  {limits[-1]}  4096  files\n{numbers}"
        )

    runtime_of(cluster).on_exec.insert(0, closing)
    assert injected(FdLimit(spare=0), cluster, node).in_effect
    assert limits == [1024, 60, 3]


@pytest.mark.parametrize(
    ("name", "params"),
    [("slow_disk", {"kb_per_s": 64}), ("fd_limit", {}), ("clock_skew", {"offset_s": 5})],
)
def test_a_fault_of_the_process_ends_with_the_process(
    name: str, params: dict[str, Any], cluster: Cluster, node: Node
) -> None:
    fault = faults[name](**params)
    assert injected(fault, cluster, node).in_effect
    cluster.runtime.kill(node.container)
    assert fault.evidence(cluster, node, {}).healed
    cluster.start_again(node)
    assert fault.evidence(cluster, node, {}).healed


@pytest.mark.parametrize(("name", "params"), [("cpu_limit", {"cpus": 0.2}), ("disk_full", {})])
def test_a_fault_of_the_container_or_the_disk_outlives_a_restart(
    name: str, params: dict[str, Any], cluster: Cluster, node: Node
) -> None:
    fault = faults[name](**params)
    assert injected(fault, cluster, node).in_effect
    cluster.runtime.kill(node.container)
    cluster.start_again(node)
    assert fault.evidence(cluster, node, {}).in_effect
