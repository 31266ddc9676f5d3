"""The interface to a container engine: its calls, and the values it passes.

`docker/` implements it with the docker SDK; `fake_runtime.py` is the shipped fake, on which every
fault and the whole runner are tested in milliseconds. One contract suite runs over both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from streamquake.cluster.images.store import ImageStore
from streamquake.topologies.errors import ErrorKind, StreamquakeError


class RuntimeUnavailable(StreamquakeError):
    """No container engine answers, or it may not be used; the message states the next step."""

    kind = ErrorKind.ENGINE_MISSING


class ContainerError(StreamquakeError):
    """The engine rejected or failed a call; the message names container and cause."""

    kind = ErrorKind.CLUSTER_FAILED


class ResponseLost(ContainerError):
    """The engine closed a command's output before all of it was read. The command itself ran."""


class PortTaken(ContainerError):
    """A published port is in use on the host; another one must be chosen."""


class ContainerStatus(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    RESTARTING = "restarting"
    """It has ended, and the engine will restart it."""
    EXITED = "exited"
    GONE = "gone"


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """A container to run. Ports are published on loopback only (container -> host)."""

    name: str
    image: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files put into the container before it starts: absolute path -> content."""
    labels: Mapping[str, str] = field(default_factory=dict)
    network: str | None = None
    ip: str | None = None
    hostname: str | None = None
    aliases: tuple[str, ...] = ()
    ports: Mapping[int, int] = field(default_factory=dict)
    memory_mb: int | None = None
    cpus: float | None = None
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    """Memory file systems: absolute path -> mount options. Lost when the container stops."""
    volumes: tuple[str, ...] = ()
    """Absolute paths on anonymous volumes, outside the overlay; they survive a restart."""
    disks: Mapping[str, str] = field(default_factory=dict)
    """The same, on block devices of the engine's machine with an ext4 file system: path ->
    device."""
    volumes_from: str | None = None
    """A container, running or not, whose volumes this one uses instead of new ones. They are
    removed with the last container that uses them."""
    keeps_disks: bool = False
    """For the keeper of disks: the capabilities to create and mount loop devices, and the engine's
    control groups at CONTROL_GROUPS."""
    socket: bool = False
    """Mount the engine's own control socket (the reaper needs it)."""
    beside: str | None = None
    """A container whose network namespace, address and host name this one shares."""
    changes_network: bool = False
    """The capability to change its network namespace."""
    auto_remove: bool = False
    """Removed by the engine itself as soon as it has ended."""


@dataclass(frozen=True, kw_only=True)
class ContainerState:
    """The present state of a container. `pid` is the host's, 0 if unknown or not running."""

    status: ContainerStatus
    exit_code: int | None = None
    oom_killed: bool = False
    pid: int = 0
    started_at: str = ""
    """When its main process was started, as ISO 8601; empty when it never was."""
    restarts: int = 0
    """How often the engine has restarted it by itself since its last explicit start."""
    image: str = ""
    """The image reference it was created with."""
    image_id: str = ""
    """The id of the image that the reference named then."""

    @property
    def started_ms(self) -> int:
        """The same, epoch milliseconds; 0 when it never was."""
        started = self.started_at and datetime.fromisoformat(self.started_at).timestamp()
        return int(1000 * (started or 0))


GONE = ContainerState(status=ContainerStatus.GONE)

CONTROL_GROUPS = "/host-cgroup"
"""The path at which a keeper of disks finds the control groups of the engine's machine."""


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """What a container engine says of itself."""

    name: str
    """Its kind and version, such as `Docker 20.10.24`."""
    system: str
    """Where its containers run, such as `Debian GNU/Linux 12`, and the version of their control
    groups."""
    memory_bytes: int
    """Of the machine, virtual or not, in which its containers run."""
    folder: Path
    """Where it keeps images and volumes, by the paths of that machine."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The limits of a container, its use of resources, and how often it reached its limits since
    its start. None is no limit. Only the limits are known of a stopped container."""

    cpus: float | None = None
    throttled: int = 0
    """Scheduling periods (0.1 s each) in which the processor limit stopped its processes."""
    throttled_ms: float = 0.0
    memory_limit_bytes: int | None = None
    memory_bytes: int = 0
    working_bytes: int = 0
    """Memory without the page cache that the kernel can drop at once."""


@dataclass(frozen=True, kw_only=True)
class FoundResource:
    """A container or network found by label."""

    id: str
    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    exit_code: int
    output: str


@dataclass(frozen=True, kw_only=True)
class ContainerEvent:
    """An event of a container, from the engine's event stream."""

    id: str
    action: str
    """die, oom, start"""
    labels: Mapping[str, str]
    epoch_ms: int
    exit_code: int | None = None


@dataclass(frozen=True, kw_only=True)
class InjectionTimes:
    """When an injection was called and when its effect was observed, epoch nanoseconds.

    The effect began between the two. `how` names the source of the observation: `pidfd`, `api`, and
    so on.
    """

    called_ns: int
    seen_ns: int
    how: str


class ContainerRuntime(Protocol):
    """The calls of the harness to a container engine. Every call may raise ContainerError; none
    hangs forever."""

    def check(self) -> None:
        """Raise RuntimeUnavailable, with the next step, when no engine can be used."""
        ...

    def facts(self) -> EngineFacts:
        """What the engine says of itself. Raises ContainerError."""
        ...

    def images(self) -> ImageStore:
        """The images of this engine, for building what is missing."""
        ...

    def create_network(self, name: str, labels: Mapping[str, str]) -> str:
        """Create a bridge network whose subnet the caller may give addresses from.

        Returns the subnet in CIDR form; the first usable address is the gateway's.
        """
        ...

    def guard(self, run_id: str) -> AbstractContextManager[None]:
        """While the context is open: if this process is killed without cleanup, everything with the
        run's label is removed within 10 s. A normal exit of the context removes nothing."""
        ...

    def start(self, spec: ContainerSpec) -> str:
        """Create and start a container; returns its id. A failing start leaves nothing behind."""
        ...

    def create(self, spec: ContainerSpec) -> str:
        """Create a container that `start_again` starts. Its address and ports are not used before
        its start."""
        ...

    def start_again(self, container: str) -> InjectionTimes:
        """Start a stopped container with its old name, address, ports and volumes.

        Does nothing to a running container.
        """
        ...

    def rename(self, container: str, name: str) -> None:
        """Give a container, running or not, another name, which must be free."""
        ...

    def kill(self, container: str, signal: str = "KILL") -> InjectionTimes:
        """Send a signal to the main process; for KILL, return when the process has ended.

        Does nothing to a container that has ended.
        """
        ...

    def pause(self, container: str) -> InjectionTimes:
        """Freeze every process; does nothing to a frozen container."""
        ...

    def unpause(self, container: str) -> InjectionTimes:
        """Thaw every process; does nothing to a container that is not frozen."""
        ...

    def usage(self, container: str) -> Usage:
        """The present limits and use; empty for a removed container."""
        ...

    def limit_cpus(self, container: str, cpus: float | None) -> InjectionTimes:
        """Set the processor limit, None for no limit; it survives a restart."""
        ...

    def limit_memory(self, container: str, limit_bytes: int) -> InjectionTimes:
        """Set the memory limit, bytes; it survives a restart.

        Raises ContainerError when more memory is in use and cannot be reclaimed (cgroups v1).
        """
        ...

    def restart_on_failure(self, container: str, times: int) -> None:
        """Let the engine restart it when its main process fails, at most this often; 0, the
        default, is never."""
        ...

    def put(self, container: str, contents: Mapping[str, str | bytes]) -> None:
        """Put files into a container, running or stopped: absolute path -> content. A text that
        begins with `#!` is executable."""
        ...

    def inspect(self, container: str) -> ContainerState:
        """The state now; GONE for a container that does not exist."""
        ...

    def exec(self, container: str, argv: Sequence[str], timeout_s: float = 60) -> ExecResult: ...

    def in_network_namespace(self, container: str, argv: Sequence[str]) -> ExecResult:
        """Run a network tool (iptables, ip, tc, ss) inside the container's network namespace.

        The container itself needs neither the tool nor any capability.
        """
        ...

    def logs(self, container: str, tail: int | None = None) -> str: ...

    def copy_out(self, container: str, path: str, target: Path) -> None:
        """Copy a file or folder out of a container, running or stopped, into a folder."""
        ...

    def events(self, labels: Mapping[str, str]) -> Iterator[ContainerEvent]:
        """Follow die, oom and start events of labelled containers until `close_events`."""
        ...

    def close_events(self) -> None: ...

    def find(self, labels: Mapping[str, str]) -> tuple[FoundResource, ...]:
        """Containers, running or not, that have all these labels.

        An empty value matches any value of the label.
        """
        ...

    def find_networks(self, labels: Mapping[str, str]) -> tuple[FoundResource, ...]: ...

    def remove(self, container: str) -> None:
        """Kill and remove a container and its anonymous volumes; does nothing if it does not
        exist."""
        ...

    def remove_network(self, network: str) -> None:
        """Remove a network; does nothing if it does not exist."""
        ...
