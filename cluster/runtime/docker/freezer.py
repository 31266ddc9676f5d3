"""The kernel's freezer of a container, written directly where the container is of this host.

The engine needs some 12 ms to reach the freezer, and this way less than one. Version 1 of the
control groups keeps it in `freezer.state` (kernel.org, cgroup-v1/freezer-subsystem), version 2 in
`cgroup.freeze` (cgroup-v2, core interface files). Out of reach, `freezer_of` answers None.
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
"""What waits for its disk freezes when it has been served, on a slow one some seconds later."""
LOOK_EVERY_S = 0.0002
REPORT_EVERY_S = 0.005


@dataclass(frozen=True, kw_only=True)
class Freezer:
    """The freezer of one container: the file to write, the file to read, and their contents."""

    group: Path
    asked: str
    reported: str
    words: tuple[str, str]
    """What to write for thawed and for frozen."""
    frozen_line: str
    """The line by which the kernel reports that everything is frozen."""

    def is_frozen(self) -> bool:
        """Raises OSError when the control group was removed."""
        return self.frozen_line in (self.group / self.reported).read_text().splitlines()

    def is_requested(self) -> bool:
        """Whether a freeze was requested, completed or not; False when the control group was
        removed."""
        with suppress(OSError):
            return (self.group / self.asked).read_text().strip() in ("FREEZING", "FROZEN", "1")
        return False

    def set(self, frozen: bool, clock: Clock) -> None:
        """Freeze or thaw, and return when the kernel reports it. Raises ContainerError."""
        name = self.group.name
        state = "frozen" if frozen else "thawed"
        try:
            (self.group / self.asked).write_text(self.words[frozen])
            wait_until(
                lambda: None if self.is_frozen() == frozen else "the kernel is at it",
                what=f"{name} {state}",
                limit_s=WITHIN_S,
                clock=clock,
                every_s=LOOK_EVERY_S,
            )
        except (OSError, NotReadyInTime) as error:
            raise ContainerError(f"{name}: could not be {state} by the kernel: {error}") from error

    def signal_all(self, number: signal.Signals) -> None:
        """Signal every process; one that ended meanwhile is left out."""
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def may_be_set(self) -> bool:
        return os.access(self.group / self.asked, os.W_OK)

    def _pids(self) -> Iterator[int]:
        with suppress(OSError):
            for line in (self.group / "cgroup.procs").read_text().split():
                yield int(line)


def freezer_of(container: str, pid: int, root: Path = ROOT) -> Freezer | None:
    """The freezer of the container whose main process is `pid`; None where out of reach."""
    if sys.platform != "linux" or pid <= 0:
        return None
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = freezer_in(groups, root)
    # The pid may be another machine's: only a control group of the container's name is its own.
    return found if found is not None and container in str(found.group) else None


def freezer_in(groups: list[str], root: Path) -> Freezer | None:
    """The freezer that a process's `/proc/PID/cgroup` names, if it is there to be used."""
    paths = {kinds: path for _, kinds, path in (line.split(":", 2) for line in groups)}
    version_1 = paths.get("freezer")
    if version_1 is not None:
        group = root / "freezer" / version_1.lstrip("/")
        requested, recorded, words, line = (
            "freezer.state",
            "freezer.state",
            ("THAWED", "FROZEN"),
            "FROZEN",
        )
    else:
        group = root / paths.get("", "/").lstrip("/")
        requested, recorded, words, line = "cgroup.freeze", "cgroup.events", ("0", "1"), "frozen 1"
    found = Freezer(group=group, asked=requested, reported=recorded, words=words, frozen_line=line)
    return found if (group / requested).exists() else None


def freeze(freezer: Freezer, report_engine: Callable[[], None], clock: Clock) -> int:
    """Freeze, then let the engine freeze it too; returns when it was seen frozen, epoch ns.

    The engine refuses to pause what it finds frozen, and what it did not pause it does not show
    as paused. So the freezer is opened for it once more; meanwhile every process is stopped by a
    signal that none can catch, and none runs.
    """
    freezer.set(True, clock)
    seen_ns = clock.epoch_ns()
    try:
        freezer.signal_all(signal.SIGSTOP)  # frozen, none forks, so that none is left out
        freezer.set(False, clock)
        _reported(freezer, report_engine, clock)
    finally:
        freezer.signal_all(signal.SIGCONT)
    return seen_ns


def _reported(freezer: Freezer, report_engine: Callable[[], None], clock: Clock) -> None:
    """Let the engine freeze what is stopped, which may take it forever: the kernel (seen on 6.18)
    can miss a stopped thread. Continued once the freezer was asked, it freezes on its way out."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="freeze") as pool:
        conclusive = pool.submit(report_engine)
        while not conclusive.done():
            if freezer.is_requested():
                freezer.signal_all(signal.SIGCONT)
            clock.sleep(REPORT_EVERY_S)
        conclusive.result()
