"""The processor and memory limits of containers: written in the kernel and stored by the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import docker
from docker.errors import NotFound

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.docker import cgroups, execute
from streamquake.cluster.runtime.docker.connection import translate_errors
from streamquake.cluster.runtime.docker.updates import update
from streamquake.cluster.runtime.runtime import ContainerError, InjectionTimes, Usage

READ_LIMIT_S = 20.0


class ContainerLimits:
    """The limits of an engine's containers."""

    def __init__(self, client: docker.APIClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def usage(self, container: str) -> Usage:
        """The limits that a stopped container will have; empty for a removed one."""
        with translate_errors(f"limits of {container}"):
            try:
                about: dict[str, Any] = self._client.inspect_container(container)
            except NotFound:
                return Usage()
            if (pid := about["State"]["Pid"]) == 0:
                return _stored_limits(about["HostConfig"])
            found = cgroups.usage_on_host(container, pid)
            if found is not None:
                return found
            if about["State"]["Paused"]:  # no command runs in a frozen container
                return _stored_limits(about["HostConfig"])
            script = ["sh", "-c", cgroups.READ_INSIDE]
            files = execute.run(self._client, container, script, READ_LIMIT_S)
        return cgroups.usage_inside(files.output)

    def limit_cpus(self, container: str, cpus: float | None) -> InjectionTimes:
        return self._limit(
            container,
            lambda pid: cgroups.limit_cpus_on_host(container, pid, cpus),
            cpu_period=cgroups.PERIOD_US,
            cpu_quota=cgroups.quota_us(cpus),
        )

    def limit_memory(self, container: str, limit_bytes: int) -> InjectionTimes:
        return self._limit(
            container,
            lambda pid: cgroups.limit_memory_on_host(container, pid, limit_bytes),
            mem_limit=limit_bytes,
            memswap_limit=limit_bytes,
        )

    def _limit(
        self, container: str, in_kernel: Callable[[int], bool], **settings: Any
    ) -> InjectionTimes:
        """Set a limit in the kernel, which is fast and gives narrow injection times, and in the
        engine, so that it survives a restart."""
        with translate_errors(f"limiting {container}"):
            try:
                pid: int = self._client.inspect_container(container)["State"]["Pid"]
            except NotFound as error:
                raise ContainerError(f"{container}: there is no such container") from error
            called_ns = self._clock.epoch_ns()
            bracket = None
            if pid and in_kernel(pid):
                effect_ns = self._clock.epoch_ns()
                bracket = InjectionTimes(called_ns=called_ns, seen_ns=effect_ns, how="cgroup")
            update(self._client, container, self._clock, **settings)
        return bracket or InjectionTimes(
            called_ns=called_ns, seen_ns=self._clock.epoch_ns(), how="api"
        )


def _stored_limits(host_config: dict[str, Any]) -> Usage:
    """The limits that the engine will set when it starts the container again."""
    quota, period = host_config["CpuQuota"], host_config["CpuPeriod"] or cgroups.PERIOD_US
    return Usage(
        cpus=quota / period if quota > 0 else None,
        memory_limit_bytes=host_config["Memory"] or None,
    )
