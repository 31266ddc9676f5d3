"""The kernel's freezer of a container, written directly if the container runs on this host.

The engine needs some 12 ms to freeze a container, a direct write less than one. The file is
`freezer.state` in version 1 of the control groups (kernel.org, cgroup-v1/freezer-subsystem) and
`cgroup.freeze` in version 2 (cgroup-v2, core interface files). `freezer_of` returns None if the
freezer is not accessible.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until

ROOT = Path("/sys/fs/cgroup")
WITHIN_S = 20.0
"""A process that waits for its disk freezes after the disk's answer, on a slow disk seconds
later."""
POLL_EVERY_S = 0.0002
SIGNAL_EVERY_S = 0.005


@dataclass(frozen=True, kw_only=True)
class Freezer:
    """The freezer of one container: `request_file` is written, `state_file` is read."""

    group: Path
    request_file: str
    state_file: str
    values: tuple[str, str]
    """The values to write for thawed and for frozen."""
    frozen_line: str
    """The line in the state file when every process is frozen."""

    def is_frozen(self) -> bool:
        """Whether every process is frozen. Raises OSError when the control group was removed."""
        return self.frozen_line in (self.group / self.state_file).read_text().splitlines()

    def is_requested(self) -> bool:
        """Whether a freeze was requested, completed or not; False when the control group was
        removed."""
        with suppress(OSError):
            requested = (self.group / self.request_file).read_text().strip()
            return requested in ("FREEZING", "FROZEN", "1")
        return False

    def set(self, frozen: bool, clock: Clock) -> None:
        """Freeze or thaw, and return when the kernel reports it. Raises ContainerError."""
        name = self.group.name
        state = "frozen" if frozen else "thawed"
        try:
            (self.group / self.request_file).write_text(self.values[frozen])
            wait_until(
                lambda: None if self.is_frozen() == frozen else "the kernel has not finished",
                what=f"{name} {state}",
                limit_s=WITHIN_S,
                clock=clock,
                every_s=POLL_EVERY_S,
            )
        except (OSError, NotReadyInTime) as error:
            raise ContainerError(f"{name}: could not be {state} by the kernel: {error}") from error

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to every process; a process that ended meanwhile is skipped."""
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def is_writable(self) -> bool:
        return os.access(self.group / self.request_file, os.W_OK)

    def _pids(self) -> Iterator[int]:
        with suppress(OSError):
            for line in (self.group / "cgroup.procs").read_text().split():
                yield int(line)


def freezer_of(container: str, pid: int, root: Path = ROOT) -> Freezer | None:
    """The freezer of the container with the main process `pid`; None if not accessible."""
    if sys.platform != "linux" or pid <= 0:
        return None
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = freezer_in(groups, root)
    # The pid may be one of another machine: the control group must have the container's name.
    return found if found is not None and container in str(found.group) else None


def freezer_in(groups: list[str], root: Path) -> Freezer | None:
    """The freezer in a process's control groups (the lines of `/proc/PID/cgroup`), if it exists."""
    paths = {kinds: path for _, kinds, path in (line.split(":", 2) for line in groups)}
    version_1 = paths.get("freezer")
    if version_1 is not None:
        freezer = Freezer(
            group=root / "freezer" / version_1.lstrip("/"),
            request_file="freezer.state",
            state_file="freezer.state",
            values=("THAWED", "FROZEN"),
            frozen_line="FROZEN",
        )
    else:
        freezer = Freezer(
            group=root / paths.get("", "/").lstrip("/"),
            request_file="cgroup.freeze",
            state_file="cgroup.events",
            values=("0", "1"),
            frozen_line="frozen 1",
        )
    return freezer if (freezer.group / freezer.request_file).exists() else None


def freeze(freezer: Freezer, pause_in_engine: Callable[[], None], clock: Clock) -> int:
    """Freeze a container in the kernel, then pause it in the engine; returns when it was frozen,
    epoch ns.

    The engine does not pause a container that is frozen already, and reports only containers that
    it paused itself as paused. So the container is thawed for the engine; meanwhile no process
    runs, since all are stopped by SIGSTOP, which they cannot catch.
    """
    freezer.set(True, clock)
    frozen_ns = clock.epoch_ns()
    try:
        freezer.signal_all(signal.SIGSTOP)  # frozen processes do not fork, so none is missed
        freezer.set(False, clock)
        _pause_stopped(freezer, pause_in_engine, clock)
    finally:
        freezer.signal_all(signal.SIGCONT)
    return frozen_ns


def _pause_stopped(freezer: Freezer, pause_in_engine: Callable[[], None], clock: Clock) -> None:
    """Let the engine pause the stopped processes. The kernel (observed on 6.18) can miss a stopped
    thread, and the pause never ends. A thread that gets SIGCONT after the freeze was requested is
    frozen before it runs."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="freeze") as pool:
        pausing = pool.submit(pause_in_engine)
        while not pausing.done():
            if freezer.is_requested():
                freezer.signal_all(signal.SIGCONT)
            clock.sleep(SIGNAL_EVERY_S)
        pausing.result()
