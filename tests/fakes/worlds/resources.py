"""Fake machines: control groups, disks that can be filled, clocks and open files.

A script is recognized by its text and changes the machine, so that a later check observes the
machine's state, not the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.disks import DEVICES, FOLDER, KEEPER_NODE, USED
from streamquake.cluster.node import Node
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.fake_runtime import FakeContainer, FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult
from streamquake.faults.catalogue import (
    clock_skew,
    cpu_limit,
    disk_full,
    fd_limit,
    memory_limit,
    slow_disk,
)
from streamquake.faults.mechanisms import disk_io
from streamquake.faults.mechanisms.resources import PROBE

MEMORY_BYTES = 300 << 20
MEMORY_LIMIT_BYTES = 1024 << 20
DISK_KB = 512 * 1024
DISK_KB_PER_S = 100_000
HARD = 1_048_576
NOTHING = ExecResult(exit_code=0, output="")


@dataclass
class Machine:
    """A node's machine: its open files, its clock, and its disk with a filler and a rate limit."""

    open_files: set[int] = field(default_factory=lambda: set(range(60)))
    soft: int = HARD
    clock_s: float = 0.0
    free_kb: int = DISK_KB
    filler_kb: int = 0
    bytes_per_s: int = 0
    started_at: str = ""


class Resources:
    """The machines of a fake cluster, by host."""

    def __init__(self, cluster: Cluster, runtime: FakeRuntime) -> None:
        self._cluster = cluster
        self._runtime = runtime
        self._machines = {node.spec.host: Machine() for node in cluster.nodes.values()}

    def machine(self, node: Node) -> Machine:
        """A node's machine; a restart of the node resets the state of its processes and its
        memory."""
        machine = self._machines[node.spec.host]
        started_at = self._runtime.inspect(node.container).started_at
        if machine.started_at != started_at:
            machine.started_at, machine.soft = started_at, HARD
            machine.clock_s, machine.bytes_per_s = 0.0, 0
        return machine

    def answer(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        if spec.labels.get(labels.NODE) == KEEPER_NODE:
            return self._in_keeper(argv)
        node = next(
            (n for n in self._cluster.nodes.values() if self._is_container_of(n, spec)), None
        )
        if node is None or list(argv[:2]) != ["sh", "-c"]:
            return None
        container = self._runtime.containers[node.container]
        acts: dict[str, Callable[[Machine, FakeContainer, Sequence[str]], ExecResult]] = {
            cpu_limit.BUSY: self._busy,
            memory_limit.CACHE: self._cache,
            memory_limit.DROP: self._drop,
            fd_limit.INSPECT: self._open_files,
            fd_limit.LIMIT: self._limit_files,
            clock_skew.SET: self._set_clock,
            clock_skew.CLEAR: self._clear_clock,
            clock_skew.READ_CLOCK: self._report_time,
            disk_io.WRITE_ON_DEVICE: self._write,
        }
        act = acts.get(argv[2])
        return None if act is None else act(self.machine(node), container, argv[4:])

    def _is_container_of(self, node: Node, spec: ContainerSpec) -> bool:
        found = self._runtime.containers.get(node.container)
        return found is not None and found.spec is spec

    def _busy(self, _: Machine, container: FakeContainer, words: Sequence[str]) -> ExecResult:
        usage = container.usage
        if usage.cpus is not None and usage.cpus < int(words[0]):
            container.usage = replace(
                usage, throttled=usage.throttled + 4, throttled_ms=usage.throttled_ms + 300
            )
        return NOTHING

    def _cache(self, _: Machine, container: FakeContainer, words: Sequence[str]) -> ExecResult:
        usage = container.usage
        wanted = usage.memory_bytes + (int(words[0]) << 20)
        used = min(wanted, usage.memory_limit_bytes or wanted)
        container.usage = replace(usage, memory_bytes=used)
        return NOTHING

    def _drop(self, _: Machine, container: FakeContainer, __: Sequence[str]) -> ExecResult:
        container.usage = replace(container.usage, memory_bytes=MEMORY_BYTES)
        return NOTHING

    def _open_files(self, machine: Machine, _: FakeContainer, __: Sequence[str]) -> ExecResult:
        limits = f"Max open files            {machine.soft}              {HARD}            files\n"
        numbers = "\n".join(map(str, sorted(machine.open_files)))
        return ExecResult(exit_code=0, output=limits + numbers)

    def _limit_files(self, machine: Machine, _: FakeContainer, words: Sequence[str]) -> ExecResult:
        machine.soft = int(words[0])
        return NOTHING

    def _set_clock(self, machine: Machine, _: FakeContainer, words: Sequence[str]) -> ExecResult:
        machine.clock_s = float(words[0])
        return NOTHING

    def _clear_clock(self, machine: Machine, _: FakeContainer, __: Sequence[str]) -> ExecResult:
        machine.clock_s = 0.0
        return NOTHING

    def _report_time(self, machine: Machine, _: FakeContainer, __: Sequence[str]) -> ExecResult:
        reported_ns = self._cluster.clock.epoch_ns() + int(machine.clock_s * 1e9)
        return ExecResult(exit_code=0, output=f"{reported_ns}\n")

    def _write(self, machine: Machine, _: FakeContainer, words: Sequence[str]) -> ExecResult:
        return _write_result(machine, int(words[1]) * disk_io.BLOCK_KB)

    def _in_keeper(self, argv: Sequence[str]) -> ExecResult | None:
        if list(argv) == ["cat", DEVICES]:
            hosts = enumerate(self._machines)
            lines = "\n".join(f"{host} /dev/loop{number}" for number, host in hosts)
            return ExecResult(exit_code=0, output=lines)
        script, host = argv[2].removeprefix('cd "$0" && '), argv[3].removeprefix(f"{FOLDER}/")
        node = next(n for n in self._cluster.nodes.values() if n.spec.host == host)
        return _run_on_disk(self.machine(node), script, argv[4:])


def _run_on_disk(machine: Machine, script: str, words: Sequence[str]) -> ExecResult | None:
    if script == disk_full.FILL:
        machine.filler_kb = max(0, DISK_KB - int(words[0]))
    elif script == disk_full.EMPTY:
        machine.filler_kb = 0
    elif script == disk_full.INSPECT:
        filler = disk_full.FILLER if machine.filler_kb else ""
        return ExecResult(exit_code=0, output=f"{machine.free_kb - machine.filler_kb}\n{filler}")
    elif script == USED:
        used_kb = DISK_KB - machine.free_kb + machine.filler_kb
        return ExecResult(exit_code=0, output=f"{used_kb // 1024}\n")
    elif script == slow_disk.LIMIT:
        machine.bytes_per_s = int(words[1])
    elif script == slow_disk.INSPECT:
        limit = f"7:0 {machine.bytes_per_s}\n" if machine.bytes_per_s else ""
        return ExecResult(exit_code=0, output=limit)
    elif script == disk_io.WRITE:
        return _write_result(machine, int(words[1]) * disk_io.BLOCK_KB)
    else:
        return None
    return NOTHING


def _write_result(machine: Machine, kilobytes: int) -> ExecResult:
    if kilobytes > machine.free_kb - machine.filler_kb:
        message = f"dd: error writing '/data/{PROBE}': No space left on device\n"
        return ExecResult(exit_code=0, output=message)
    rate = machine.bytes_per_s / 1024 or DISK_KB_PER_S
    return ExecResult(exit_code=0, output=f"1 byte copied, {kilobytes / rate:.6f} s, 1 MB/s\n")


def install(cluster: Cluster) -> None:
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    for node in cluster.nodes.values():
        container = runtime.containers[node.container]
        container.usage = replace(
            container.usage,
            memory_limit_bytes=MEMORY_LIMIT_BYTES,
            memory_bytes=MEMORY_BYTES,
            working_bytes=MEMORY_BYTES,
        )
    marks = {labels.RUN: cluster.run_id, labels.NODE: KEEPER_NODE}
    runtime.start(ContainerSpec(name=cluster.container_name("disks"), image="none", labels=marks))
    runtime.on_exec.append(Resources(cluster, runtime).answer)
    cluster.disks.find()
