"""The container runtime on a Docker engine, through the docker SDK.

Every error is raised as ContainerError, PortTaken or RuntimeUnavailable. If the engine's containers
are processes of this host, kills, freezes and network rules go directly to the kernel
(`processes.py`, `kernel.py`); otherwise they use the engine's API, which is slower.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, NotFound

from streamquake.cluster.runtime.clock import Clock, SystemClock
from streamquake.cluster.runtime.docker import create, execute, files, kernel
from streamquake.cluster.runtime.docker.connection import check, connect, facts, translate_errors
from streamquake.cluster.runtime.docker.events import Events
from streamquake.cluster.runtime.docker.images import DockerImages
from streamquake.cluster.runtime.docker.limits import ContainerLimits
from streamquake.cluster.runtime.docker.networks import Networks
from streamquake.cluster.runtime.docker.processes import Processes
from streamquake.cluster.runtime.docker.reaper import Reaper
from streamquake.cluster.runtime.docker.updates import update
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
    Usage,
)

STATUSES = {
    "created": ContainerStatus.CREATED,
    "running": ContainerStatus.RUNNING,
    "paused": ContainerStatus.PAUSED,
    "restarting": ContainerStatus.RESTARTING,
    "exited": ContainerStatus.EXITED,
    "dead": ContainerStatus.EXITED,
    "removing": ContainerStatus.GONE,
}


class DockerRuntime:
    """A ContainerRuntime on the engine of DOCKER_HOST or the current Docker context.

    It connects at the first call. Several threads may use it at once.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._events = Events()
        self._connecting = threading.Lock()
        self._processes = Processes(lambda: self._client, self.inspect, self._clock)

    @cached_property
    def _connected(self) -> docker.APIClient:
        return connect()

    @property
    def _client(self) -> docker.APIClient:
        with self._connecting:
            return self._connected

    def check(self) -> None:
        check(self._client)

    def facts(self) -> EngineFacts:
        return facts(self._client)

    def images(self) -> DockerImages:
        return DockerImages()

    def create_network(self, name: str, labels: Mapping[str, str]) -> str:
        return Networks(self._client, self._clock).create(name, labels)

    def remove_network(self, network: str) -> None:
        Networks(self._client, self._clock).remove(network)

    def guard(self, run_id: str) -> AbstractContextManager[None]:
        return Reaper(self, run_id)

    def start(self, spec: ContainerSpec) -> str:
        container = self.create(spec)
        with translate_errors(spec.name), self._removed_on_failure(container):
            self._client.start(container)
        return container

    def create(self, spec: ContainerSpec) -> str:
        with translate_errors(spec.name):
            container = create.create(self._client, spec)
            with self._removed_on_failure(container):
                if spec.files:
                    self.put(container, spec.files)
        return container

    def rename(self, container: str, name: str) -> None:
        with translate_errors(f"{container}: its new name {name}"):
            self._client.rename(container, name)

    def start_again(self, container: str) -> InjectionTimes:
        called_ns = self._clock.epoch_ns()
        with translate_errors(container):
            self._client.start(container)
        return self._times_after(container, {ContainerStatus.RUNNING}, called_ns)

    def kill(self, container: str, signal: str = "KILL") -> InjectionTimes:
        return self._processes.kill(container, signal)

    def pause(self, container: str) -> InjectionTimes:
        return self._processes.pause(container)

    def unpause(self, container: str) -> InjectionTimes:
        return self._processes.unpause(container)

    def usage(self, container: str) -> Usage:
        return ContainerLimits(self._client, self._clock).usage(container)

    def limit_cpus(self, container: str, cpus: float | None) -> InjectionTimes:
        return ContainerLimits(self._client, self._clock).limit_cpus(container, cpus)

    def limit_memory(self, container: str, limit_bytes: int) -> InjectionTimes:
        return ContainerLimits(self._client, self._clock).limit_memory(container, limit_bytes)

    def restart_on_failure(self, container: str, times: int) -> None:
        with translate_errors(container):
            policy = {"Name": "on-failure" if times else "no", "MaximumRetryCount": times}
            update(self._client, container, self._clock, restart_policy=policy)

    def put(self, container: str, contents: Mapping[str, str | bytes]) -> None:
        with translate_errors(container):
            packed = files.packed(contents, self._clock.epoch_ns() / 1e9)
            self._client.put_archive(container, "/", packed)

    def inspect(self, container: str) -> ContainerState:
        with translate_errors(container):
            try:
                found: Mapping[str, Any] = self._client.inspect_container(container)
            except NotFound:
                return GONE
        state = found["State"]
        status = STATUSES.get(state["Status"], ContainerStatus.RUNNING)
        self._processes.remember(container, state["Pid"])
        return ContainerState(
            status=status,
            exit_code=state["ExitCode"] if status == ContainerStatus.EXITED else None,
            oom_killed=state["OOMKilled"],
            pid=state["Pid"],
            started_at=state["StartedAt"],
            restarts=found["RestartCount"],
            image=found["Config"]["Image"],
            image_id=found["Image"],
        )

    def exec(self, container: str, argv: Sequence[str], timeout_s: float = 60) -> ExecResult:
        with translate_errors(f"{container}: {argv[0]}"):
            return execute.run(self._client, container, argv, timeout_s)

    def in_network_namespace(self, container: str, argv: Sequence[str]) -> ExecResult:
        done = kernel.in_network_namespace(container, self._processes.last_pid(container), argv)
        if done is not None:
            return done
        state = self._existing(container)
        if state.status not in (ContainerStatus.RUNNING, ContainerStatus.PAUSED):
            raise ContainerError(f"{container}: is {state.status}, so it has no network namespace")
        done = kernel.in_network_namespace(container, state.pid, argv)
        return done or execute.run_beside(self, self._client, container, argv)

    def logs(self, container: str, tail: int | None = None) -> str:
        with translate_errors(f"logs of {container}"):
            log: bytes = self._client.logs(container, tail="all" if tail is None else tail)
        return log.decode(errors="replace")

    def copy_out(self, container: str, path: str, target: Path) -> None:
        with translate_errors(f"{container}:{path}"):
            chunks, _ = self._client.get_archive(container, path)
            files.unpack(chunks, target)

    def events(self, labels: Mapping[str, str]) -> Iterator[ContainerEvent]:
        return self._events.follow(_filters(labels))

    def close_events(self) -> None:
        self._events.close()

    def find(self, labels: Mapping[str, str]) -> tuple[FoundResource, ...]:
        with translate_errors("finding containers"):
            listed = self._client.containers(all=True, filters={"label": _filters(labels)})
        return tuple(_found(container["Names"], container) for container in listed)

    def find_networks(self, labels: Mapping[str, str]) -> tuple[FoundResource, ...]:
        with translate_errors("finding networks"):
            listed = self._client.networks(filters={"label": _filters(labels)})
        return tuple(_found([network["Name"]], network) for network in listed)

    def remove(self, container: str) -> None:
        with translate_errors(f"removing {container}"):
            try:
                self._client.remove_container(container, v=True, force=True)
            except NotFound:
                return
            except APIError as error:
                if "already in progress" not in str(error.explanation):
                    raise
        self._processes.await_status(container, {ContainerStatus.GONE})

    @contextmanager
    def _removed_on_failure(self, container: str) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.remove(container)
            raise

    def _existing(self, container: str) -> ContainerState:
        state = self.inspect(container)
        if state.status == ContainerStatus.GONE:
            raise ContainerError(f"{container}: there is no such container any more")
        return state

    def _times_after(
        self, container: str, awaited: set[ContainerStatus], called_ns: int
    ) -> InjectionTimes:
        self._processes.await_status(container, awaited)
        return InjectionTimes(called_ns=called_ns, seen_ns=self._clock.epoch_ns(), how="api")


def _found(names: Sequence[str] | None, listed: Mapping[str, Any]) -> FoundResource:
    """A resource that is being removed may be listed without name and labels."""
    name = names[0].lstrip("/") if names else listed["Id"]
    return FoundResource(id=listed["Id"], name=name, labels=listed["Labels"] or {})


def _filters(labels: Mapping[str, str]) -> list[str]:
    """The engine's filters; an empty value matches any value of the label."""
    return [f"{key}={value}" if value else key for key, value in labels.items()]
