"""Operations on a container's processes: kill, signal, freeze, thaw.

They use the kernel if the container runs on this host (`kernel.py`, `freezer.py`), and the engine's
API otherwise. They return when the engine reports the new state.
"""

from __future__ import annotations

from collections.abc import Callable

import docker
from docker.errors import APIError

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.docker import kernel
from streamquake.cluster.runtime.docker.connection import translate_errors
from streamquake.cluster.runtime.docker.freezer import Freezer, freeze, freezer_of
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerState,
    ContainerStatus,
    InjectionTimes,
)
from streamquake.cluster.runtime.waiting import NotReadyInTime, Pending, wait_until

NOTICED_WITHIN_S = 30.0
"""How long the engine may take to report a state that the kernel or a call has already set."""
ENDED = (ContainerStatus.EXITED, ContainerStatus.CREATED)


class Processes:
    """The processes of all containers of one engine.

    A query to the engine takes longer than a signal, so the main process of a container is known
    from its last inspection. The sender of a signal verifies that the process is still the
    container's.
    """

    def __init__(
        self,
        client: Callable[[], docker.APIClient],
        inspect: Callable[[str], ContainerState],
        clock: Clock,
    ) -> None:
        self._client = client
        self._inspect = inspect
        self._clock = clock
        self._pids: dict[str, int] = {}

    def remember(self, container: str, pid: int) -> None:
        """Remember the main process; 0 when there is none."""
        self._pids[container] = pid

    def last_pid(self, container: str) -> int:
        """The main process at the last inspection; 0 when there was none."""
        return self._pids.get(container, 0)

    def kill(self, container: str, signal: str) -> InjectionTimes:
        bracket = self._kill_in_kernel(container, signal)
        if bracket is None:
            state = self._existing(container)
            if state.status in ENDED:
                now_ns = self._clock.epoch_ns()
                return InjectionTimes(called_ns=now_ns, seen_ns=now_ns, how="api")
            bracket = self._kill_in_kernel(container, signal)
        return bracket or self._kill_by_api(container, signal)

    def pause(self, container: str) -> InjectionTimes:
        called_ns = self._clock.epoch_ns()
        freezer = self._freezer(container)
        paused = freezer is None or freezer.is_frozen()
        if paused and self._existing(container).status == ContainerStatus.PAUSED:
            paused_ns = self._clock.epoch_ns()
        elif freezer is None:
            self._pause_by_api(container)
            self.await_status(container, {ContainerStatus.PAUSED})
            paused_ns = self._clock.epoch_ns()
        else:
            paused_ns = freeze(freezer, lambda: self._pause_by_api(container), self._clock)
            self.await_status(container, {ContainerStatus.PAUSED})
        how = "api" if freezer is None else "freezer"
        return InjectionTimes(called_ns=called_ns, seen_ns=paused_ns, how=how)

    def unpause(self, container: str) -> InjectionTimes:
        called_ns = self._clock.epoch_ns()
        paused = self._existing(container).status == ContainerStatus.PAUSED
        if (freezer := self._freezer(container)) is not None:
            # The engine thaws only a container that it paused and that is frozen.
            freezer.set(paused, self._clock)
        if paused:
            with translate_errors(container):
                self._client().unpause(container)
        return InjectionTimes(called_ns=called_ns, seen_ns=self._clock.epoch_ns(), how="api")

    def await_status(self, container: str, awaited: set[ContainerStatus]) -> None:
        """Wait until the engine reports one of these states. Raises ContainerError."""

        def pending() -> str | None:
            status = self._inspect(container).status
            return None if status in awaited else f"it is {status}"

        self._wait(pending, f"{container} {' or '.join(sorted(awaited))}")

    def _kill_in_kernel(self, container: str, signal: str) -> InjectionTimes | None:
        """None if the process is not accessible, or frozen: the engine thaws it before the kill."""
        pid = self._pids.get(container, 0)
        freezer = freezer_of(container, pid)
        if freezer is not None and freezer.is_frozen():
            return None
        bracket = kernel.kill(container, pid, signal, self._clock)
        if bracket is not None and signal == "KILL":
            self._await_end_of(container, pid)
        return bracket

    def _kill_by_api(self, container: str, signal: str) -> InjectionTimes:
        pid = self._inspect(container).pid
        called_ns = self._clock.epoch_ns()
        with translate_errors(container):
            try:
                self._client().kill(container, signal)
            except APIError as error:
                if "is not running" not in str(error.explanation):
                    raise
        if signal == "KILL":
            self._await_end_of(container, pid)
        return InjectionTimes(called_ns=called_ns, seen_ns=self._clock.epoch_ns(), how="api")

    def _await_end_of(self, container: str, pid: int) -> None:
        """Wait until the engine reports the end of this process. Another one may run already, if
        the engine restarted the container."""

        def pending() -> str | None:
            state = self._inspect(container)
            runs = state.pid == pid and state.status not in (*ENDED, ContainerStatus.GONE)
            return f"it is {state.status}" if runs else None

        self._wait(pending, f"{container} ended")

    def _pause_by_api(self, container: str) -> None:
        with translate_errors(container):
            self._client().pause(container)

    def _freezer(self, container: str) -> Freezer | None:
        """The kernel's freezer of a running container; None if it cannot be written."""
        freezer = freezer_of(container, self._pids.get(container, 0)) or freezer_of(
            container, self._existing(container).pid
        )
        return freezer if freezer is not None and freezer.is_writable() else None

    def _existing(self, container: str) -> ContainerState:
        state = self._inspect(container)
        if state.status == ContainerStatus.GONE:
            raise ContainerError(f"{container}: there is no such container any more")
        return state

    def _wait(self, pending: Pending, what: str) -> None:
        try:
            wait_until(
                pending, what=what, limit_s=NOTICED_WITHIN_S, clock=self._clock, every_s=0.005
            )
        except NotReadyInTime as error:
            raise ContainerError(str(error)) from error
