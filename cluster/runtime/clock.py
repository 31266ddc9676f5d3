"""The clock of a run: its interface, the system clock, and a fake for tests."""

from __future__ import annotations

import threading
import time
from typing import Protocol

from streamquake.cluster.runtime.runnable_threads import others_are_runnable


class Clock(Protocol):
    """Nanoseconds since the run began, and a way to let time pass."""

    def now_ns(self) -> int: ...

    def restart(self) -> None:
        """Count from zero again, for another run. Wall-clock time continues."""
        ...

    def epoch_ns(self) -> int:
        """Wall-clock nanoseconds since 1970, as in the time stamps of engines' events."""
        ...

    def epoch_ms(self) -> int: ...

    def set_by_ns(self) -> int:
        """By how much the machine's wall clock was set since the run began, in nanoseconds. Time
        in which the machine slept counts, too."""
        ...

    def sleep(self, seconds: float) -> None: ...

    def wait(self, signal: threading.Event, seconds: float) -> None:
        """Let this time pass, or less when the signal is set."""
        ...


def on_run_clock_ns(clock: Clock, epoch_ns: int) -> int:
    """A wall-clock moment (epoch nanoseconds) as nanoseconds since the run began."""
    return epoch_ns - (clock.epoch_ns() - clock.now_ns())


class SystemClock:
    """The machine's monotonic clock, from zero when a run begins, anchored then to wall time."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._began_ns = time.monotonic_ns()
        self._began_epoch_ns = time.time_ns()

    def now_ns(self) -> int:
        return time.monotonic_ns() - self._began_ns

    def epoch_ns(self) -> int:
        return self._began_epoch_ns + self.now_ns()

    def epoch_ms(self) -> int:
        return self.epoch_ns() // 1_000_000

    def set_by_ns(self) -> int:
        # A time service that changes the rate changes it for both clocks alike.
        return time.time_ns() - self.epoch_ns()

    def sleep(self, seconds: float) -> None:
        time.sleep(max(seconds, 0.0))

    def wait(self, signal: threading.Event, seconds: float) -> None:
        signal.wait(max(seconds, 0.0))


OTHER_THREADS_S = 0.0003
"""The real time for which other threads may run before fake time passes."""
RUNNABLE_THREADS_S = 0.2
"""The same while some of them have work, in CPU time of this process: on a busy machine its threads
wait long for a processor."""

STEP_S = 0.05
"""The shortest wait on a fake clock, in fake seconds: a loop that looks every 10 ms looks less
often, since each look costs real time."""


class FakeClock:
    """A clock that moves only when a thread sleeps on it; for tests without waiting."""

    def __init__(self) -> None:
        self._now_ns = 0
        self._began_epoch_ns = 1_767_225_600_000_000_000
        self.wall_clock_set_by_ns = 0

    def restart(self) -> None:
        self._began_epoch_ns += self._now_ns + self.wall_clock_set_by_ns
        self._now_ns = self.wall_clock_set_by_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    def epoch_ns(self) -> int:
        return self._began_epoch_ns + self._now_ns

    def epoch_ms(self) -> int:
        return self.epoch_ns() // 1_000_000

    def set_by_ns(self) -> int:
        return self.wall_clock_set_by_ns

    def sleep(self, seconds: float) -> None:
        self._now_ns += int(seconds * 1e9)

    def wait(self, signal: threading.Event, seconds: float) -> None:
        """Let all of the time pass, unless another thread signals first.

        Fake time passes faster than threads work, so they get real time first: otherwise a fault
        was "not in effect within its limit" on a busy machine.
        """
        until_s = time.process_time() + RUNNABLE_THREADS_S
        while not signal.wait(OTHER_THREADS_S):
            if not others_are_runnable() or time.process_time() >= until_s:
                self.sleep(max(seconds, STEP_S))
                return
