"""The shipped fake of a container engine: containers in memory, on any clock.

It fulfils the contract of the Docker runtime (one suite runs over both), so that faults and the
whole runner can be tested in milliseconds. Tests script what happens inside a container: `on_exec`
answers commands, `write_log` writes its log, `write` adds files, `die` ends it as a crash would,
`on_start` lets its process fail, and `failing_starts` the engine.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from streamquake.cluster.images.store import ImageBuild, StepFailed, ToolCall
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import (
    GONE,
    ContainerError,
    ContainerEvent,
    ContainerSpec,
    ContainerState,
    ContainerStatus,
    EngineFacts,
    ExecResult,
    FoundResource,
    InjectionTimes,
    PortTaken,
    RuntimeUnavailable,
    Usage,
)

OnExec = Callable[[ContainerSpec, Sequence[str]], ExecResult | None]
"""Returns the result of a command in a container, or None to pass it to the next handler."""

CALL_S = 0.001
"""Every injection takes a millisecond of the clock, so that its times differ."""
KILLED = 137
ENDINGS = {"KILL": KILLED, "TERM": 143, "INT": 130, "HUP": 129}
"""Signals that end a process by default -> its exit code."""


@dataclass
class FakeContainer:
    """One container in memory. `rules` are the commands that ran in its network namespace."""

    id: str
    spec: ContainerSpec
    state: ContainerState
    files: dict[str, str]
    log: list[str] = field(default_factory=list)
    rules: list[tuple[str, ...]] = field(default_factory=list)
    stopped: bool = False
    """Whether a signal has stopped the main process."""
    may_restart: int = 0
    """How often the engine may restart it by itself."""
    usage: Usage = field(default_factory=Usage)


class CompleteImageStore:
    """An image store that has every image, so that nothing is ever built."""

    def exists(self, tag: str) -> bool:
        return True

    def image_id(self, tag: str) -> str | None:
        return f"sha256:{tag}"

    def is_built_here(self, tag: str) -> bool | None:
        return True

    def pull(self, ref: str, timeout_s: float) -> bool:
        return True

    def import_tar(self, path: Path, tag: str) -> None:
        raise StepFailed("import", f"{tag}: the fake builds nothing")

    def build(self, build: ImageBuild, log: Callable[[str], None]) -> None:
        raise StepFailed("build", f"{build.tag}: the fake builds nothing")

    def run(self, call: ToolCall) -> str:
        raise StepFailed("run", f"{call}: the fake runs nothing")


class FakeRuntime:
    """A ContainerRuntime without an engine."""

    def __init__(self, clock: Clock) -> None:
        self.containers: dict[str, FakeContainer] = {}
        self.on_exec: list[OnExec] = []
        self.on_network_tool: list[OnExec] = []
        self.on_start: list[Callable[[FakeContainer], int | None]] = []
        """Called with a container that starts: returns the exit code with which its process fails
        at once."""
        self.failing_starts: dict[str, Exception] = {}
        """Container name -> what its next starts raise."""
        self.unavailable: str | None = None
        """Why no engine can be used, or None."""
        self.clock = clock
        self._networks: dict[str, FoundResource] = {}
        self._numbers = itertools.count(1)
        self._followers: list[tuple[Mapping[str, str], queue.Queue[ContainerEvent | None]]] = []
        self._lock = threading.RLock()

    def by_name(self, name: str) -> FakeContainer:
        """The container of this name. Raises ContainerError."""
        for container in self.containers.values():
            if container.spec.name == name:
                return container
        raise ContainerError(f"{name}: there is no such container")

    def write_log(self, container: str, line: str) -> None:
        """Write a line to a container's log."""
        self._existing(container).log.append(line)

    def write(self, container: str, path: str, text: str) -> None:
        """Write a file in a container, as the program in it would."""
        self._existing(container).files[path] = text

    def die(self, container: str, exit_code: int, oom_killed: bool = False) -> None:
        """End a container's main process, as a crash or the memory limit would."""
        with self._lock:
            found = self._existing(container)
            if oom_killed:
                self._report(found, "oom")
            self._end(found, exit_code, oom_killed)

    def check(self) -> None:
        if self.unavailable is not None:
            raise RuntimeUnavailable(self.unavailable)

    def facts(self) -> EngineFacts:
        return EngineFacts(
            name="Fake 1", system="nowhere", memory_bytes=24 << 30, folder=Path("/nowhere")
        )

    def images(self) -> CompleteImageStore:
        return CompleteImageStore()

    def create_network(self, name: str, labels: Mapping[str, str]) -> str:
        with self._lock:
            if any(network.name == name for network in self._networks.values()):
                raise ContainerError(f"network {name}: exists already")
            number = next(self._numbers)
            found = FoundResource(id=f"network-{number}", name=name, labels=dict(labels))
            self._networks[found.id] = found
        return f"10.{number // 256}.{number % 256}.0/24"

    def guard(self, run_id: str) -> AbstractContextManager[None]:
        """Does nothing: the containers in this process's memory end with it."""
        return nullcontext()

    def start(self, spec: ContainerSpec) -> str:
        with self._lock:
            self._reject(spec)
            container = self.create(spec)
            self._run(self.containers[container])
        return container

    def create(self, spec: ContainerSpec) -> str:
        with self._lock:
            self._reject_names(spec)
            container = FakeContainer(
                id=f"container-{next(self._numbers)}",
                spec=spec,
                state=ContainerState(status=ContainerStatus.CREATED),
                files=dict(spec.files),
                usage=_limits_of(spec),
            )
            self.containers[container.id] = container
        return container.id

    def rename(self, container: str, name: str) -> None:
        with self._lock:
            found = self._existing(container)
            if any(other.spec.name == name for other in self.containers.values()):
                raise ContainerError(f"{container}: the name {name} is in use")
            found.spec = replace(found.spec, name=name)

    def start_again(self, container: str) -> InjectionTimes:
        called_ns = self.clock.epoch_ns()
        with self._lock:
            found = self._existing(container)
            if found.state.status == ContainerStatus.PAUSED:
                raise ContainerError(f"{container}: is paused; unpause it instead")
            if found.state.status != ContainerStatus.RUNNING:
                self._reject(found.spec, again=found)
                self._run(found)
        return self._bracket(called_ns)

    def kill(self, container: str, signal: str = "KILL") -> InjectionTimes:
        called_ns = self.clock.epoch_ns()
        with self._lock:
            found = self._existing(container)
            alive = found.state.status in (ContainerStatus.RUNNING, ContainerStatus.PAUSED)
            if alive and signal in ENDINGS:
                self._end(found, ENDINGS[signal])
            elif alive and signal in ("STOP", "CONT"):
                found.stopped = signal == "STOP"
        return self._bracket(called_ns)

    def pause(self, container: str) -> InjectionTimes:
        called_ns = self.clock.epoch_ns()
        with self._lock:
            found = self._existing(container)
            if found.state.status not in (ContainerStatus.RUNNING, ContainerStatus.PAUSED):
                raise ContainerError(f"{container}: is not running")
            found.state = replace(found.state, status=ContainerStatus.PAUSED)
        return self._bracket(called_ns)

    def unpause(self, container: str) -> InjectionTimes:
        called_ns = self.clock.epoch_ns()
        with self._lock:
            found = self._existing(container)
            if found.state.status == ContainerStatus.PAUSED:
                found.state = replace(found.state, status=ContainerStatus.RUNNING)
        return self._bracket(called_ns)

    def usage(self, container: str) -> Usage:
        with self._lock:
            found = self.containers.get(container)
            return Usage() if found is None else found.usage

    def limit_cpus(self, container: str, cpus: float | None) -> InjectionTimes:
        return self._limit(container, cpus=cpus)

    def limit_memory(self, container: str, limit_bytes: int) -> InjectionTimes:
        return self._limit(container, memory_limit_bytes=limit_bytes)

    def restart_on_failure(self, container: str, times: int) -> None:
        self._existing(container).may_restart = times

    def put(self, container: str, contents: Mapping[str, str | bytes]) -> None:
        # Its files are texts; in Latin-1 each byte is a character.
        texts = {
            path: content if isinstance(content, str) else content.decode("latin-1")
            for path, content in contents.items()
        }
        self._existing(container).files.update(texts)

    def inspect(self, container: str) -> ContainerState:
        with self._lock:
            found = self.containers.get(container)
            if found is None:
                return GONE
            return replace(found.state, image=found.spec.image, image_id=found.spec.image)

    def exec(self, container: str, argv: Sequence[str], timeout_s: float = 60) -> ExecResult:
        found = self._existing(container)
        if found.state.status != ContainerStatus.RUNNING:
            raise ContainerError(f"{container}: is {found.state.status}, not running")
        return _answer(self.on_exec, found.spec, argv)

    def in_network_namespace(self, container: str, argv: Sequence[str]) -> ExecResult:
        found = self._existing(container)
        if found.state.status not in (ContainerStatus.RUNNING, ContainerStatus.PAUSED):
            raise ContainerError(f"{container}: is {found.state.status}: no network namespace")
        found.rules.append(tuple(argv))
        return _answer(self.on_network_tool, found.spec, argv)

    def logs(self, container: str, tail: int | None = None) -> str:
        log = self._existing(container).log
        lines = log if tail is None else log[max(0, len(log) - tail) :]
        return "".join(f"{line}\n" for line in lines)

    def copy_out(self, container: str, path: str, target: Path) -> None:
        files = self._existing(container).files
        below = [name for name in files if PurePosixPath(name).is_relative_to(path)]
        if not below:
            raise ContainerError(f"{container}:{path}: there is no such file")
        for name in below:
            copy = target / PurePosixPath(name).relative_to(PurePosixPath(path).parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(files[name], encoding="utf-8")

    def events(self, labels: Mapping[str, str]) -> Iterator[ContainerEvent]:
        events: queue.Queue[ContainerEvent | None] = queue.Queue()
        with self._lock:
            self._followers.append((dict(labels), events))
        return iter(events.get, None)

    def close_events(self) -> None:
        with self._lock:
            followers, self._followers = self._followers, []
        for _, events in followers:
            events.put(None)

    def find(self, labels: Mapping[str, str]) -> tuple[FoundResource, ...]:
        with self._lock:
            return tuple(
                FoundResource(id=c.id, name=c.spec.name, labels=dict(c.spec.labels))
                for c in self.containers.values()
                if _carries(c.spec.labels, labels)
            )

    def find_networks(self, labels: Mapping[str, str]) -> tuple[FoundResource, ...]:
        with self._lock:
            return tuple(n for n in self._networks.values() if _carries(n.labels, labels))

    def remove(self, container: str) -> None:
        with self._lock:
            found = self.containers.get(container)
            if found is not None and found.state.status in (
                ContainerStatus.RUNNING,
                ContainerStatus.PAUSED,
            ):
                self._end(found, KILLED)
            self.containers.pop(container, None)

    def remove_network(self, network: str) -> None:
        with self._lock:
            self._networks = {
                key: found
                for key, found in self._networks.items()
                if network not in (key, found.name)
            }

    def _limit(self, container: str, **limits: float | int | None) -> InjectionTimes:
        called_ns = self.clock.epoch_ns()
        with self._lock:
            found = self._existing(container)
            found.usage = replace(found.usage, **limits)  # type: ignore[arg-type]
        return self._bracket(called_ns)

    def _bracket(self, called_ns: int) -> InjectionTimes:
        self.clock.sleep(CALL_S)
        return InjectionTimes(called_ns=called_ns, seen_ns=self.clock.epoch_ns(), how="fake")

    def _existing(self, container: str) -> FakeContainer:
        with self._lock:
            if container not in self.containers:
                raise ContainerError(f"{container}: there is no such container any more")
            return self.containers[container]

    def _reject(self, spec: ContainerSpec, again: FakeContainer | None = None) -> None:
        """Raise what a real engine would when a container cannot start."""
        if (error := self.failing_starts.get(spec.name)) is not None:
            raise error
        self._reject_names(spec, again)
        beside = self.containers.get(spec.beside or "")
        if spec.beside and (beside is None or beside.state.status != ContainerStatus.RUNNING):
            raise ContainerError(f"{spec.name}: {spec.beside} does not run")
        running = [
            c.spec
            for c in self.containers.values()
            if c is not again
            and c.state.status in (ContainerStatus.RUNNING, ContainerStatus.PAUSED)
        ]
        taken = {port for other in running for port in other.ports.values()}
        if clash := taken & set(spec.ports.values()):
            raise PortTaken(f"{spec.name}: port {min(clash)} is taken")
        if spec.ip and any((o.network, o.ip) == (spec.network, spec.ip) for o in running):
            raise ContainerError(f"{spec.name}: address {spec.ip} is in use")

    def _reject_names(self, spec: ContainerSpec, again: FakeContainer | None = None) -> None:
        """Raise what a real engine would when a container cannot be created."""
        others = [c.spec for c in self.containers.values() if c is not again]
        if any(other.name == spec.name for other in others):
            raise ContainerError(f"{spec.name}: the name is in use")
        networks = {network.name for network in self._networks.values()}
        if spec.network is not None and spec.network not in networks:
            raise ContainerError(f"{spec.name}: there is no network {spec.network}")

    def _run(self, container: FakeContainer, restarts: int = 0) -> None:
        if container.state.status == ContainerStatus.CREATED:
            container.files |= self._shared_files(container.spec)
        container.rules.clear()
        container.stopped = False
        pid = next(self._numbers)
        # Every start has its own time stamp, even at the same time of the clock.
        started_s = self.clock.epoch_ns() / 1e9 + pid / 1e6
        container.state = ContainerState(
            status=ContainerStatus.RUNNING,
            pid=pid,
            started_at=datetime.fromtimestamp(started_s, UTC).isoformat(),
            restarts=restarts,
        )
        self._report(container, "start")
        for fails in self.on_start:
            if (exit_code := fails(container)) is not None:
                self._end(container, exit_code)
                return

    def _shared_files(self, spec: ContainerSpec) -> dict[str, str]:
        """The files on the volumes that a container shares with another."""
        other = self.containers.get(spec.volumes_from or "")
        folders = (*spec.volumes, *spec.disks)
        return {
            path: text
            for path, text in (other.files if other else {}).items()
            if any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
        }

    def _end(self, container: FakeContainer, exit_code: int, oom_killed: bool = False) -> None:
        container.rules.clear()
        container.state = ContainerState(
            status=ContainerStatus.EXITED,
            exit_code=exit_code,
            oom_killed=oom_killed,
            started_at=container.state.started_at,
            restarts=container.state.restarts,
        )
        self._report(container, "die", exit_code)
        if exit_code != 0 and container.state.restarts < container.may_restart:
            self._run(container, container.state.restarts + 1)
        if container.spec.auto_remove:
            self.containers.pop(container.id, None)

    def _report(self, container: FakeContainer, action: str, exit_code: int | None = None) -> None:
        event = ContainerEvent(
            id=container.id,
            action=action,
            labels=dict(container.spec.labels),
            epoch_ms=self.clock.epoch_ms(),
            exit_code=exit_code,
        )
        for wanted, events in self._followers:
            if _carries(container.spec.labels, wanted):
                events.put(event)


def _limits_of(spec: ContainerSpec) -> Usage:
    limit = None if spec.memory_mb is None else spec.memory_mb * 1024 * 1024
    return Usage(cpus=spec.cpus, memory_limit_bytes=limit)


def _carries(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(
        key in labels and (not value or labels[key] == value) for key, value in wanted.items()
    )


def _answer(handlers: Sequence[OnExec], spec: ContainerSpec, argv: Sequence[str]) -> ExecResult:
    for handler in handlers:
        if (answer := handler(spec, argv)) is not None:
            return answer
    return ExecResult(exit_code=0, output="")
