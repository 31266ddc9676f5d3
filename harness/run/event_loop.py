"""The loop: the one thread that writes the history.

Workers (load, engine followers, container events, strikes) only hand it notes and samples. It
sleeps until one comes, so that a trigger is noticed at once; while it waits it shows progress and
saves the metrics gathered so far.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.waiting import NotReadyInTime, Pending
from streamquake.reports.record.event import Action, Event, EventDraft, Kind
from streamquake.reports.record.history import History, HistoryWriter
from streamquake.reports.record.metrics import Metrics

IDLE_S = 0.01
"""How long the loop rests at most when nothing comes; bounds how late a moment is noticed."""
FLUSH_EVERY_NS = 10 * 10**9
SHOW_EVERY_NS = 250 * 10**6


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One value of a series at a place (a node, a task, a topic), on the run's clock."""

    at_ns: int
    series: str
    where: str
    value: float


class EventLoop:
    """Takes notes from every thread, gives them their place, and tells the listeners."""

    def __init__(
        self,
        history: HistoryWriter,
        metrics: Metrics,
        clock: Clock,
        show: Callable[[], None],
        heed: Callable[[str, float], None] = lambda series, value: None,
    ) -> None:
        self.clock = clock
        self.metrics = metrics
        self._history = history
        self._handed: queue.SimpleQueue[EventDraft | Sample] = queue.SimpleQueue()
        self._woken = threading.Event()
        self._listeners: list[Callable[[Event], None]] = []
        self._samplers: list[Callable[[Sample], None]] = []
        self._show = show
        self._heed = heed
        self._flushed_ns = 0
        self._shown_ns = 0

    def record_event(self, note: EventDraft) -> None:
        """Hand over a note; from any thread."""
        self._handed.put(note)
        self._woken.set()

    def wake(self) -> None:
        """End the loop's rest: there is something to look at; from any thread."""
        self._woken.set()

    def record(
        self,
        action: Action,
        *,
        kind: Kind = Kind.INFO,
        process: str = "harness",
        error: str | None = None,
        **value: Any,
    ) -> None:
        """Hand over a note about something that happens now; from any thread."""
        self.record_event(
            EventDraft(
                at_ns=self.clock.now_ns(),
                process=process,
                kind=kind,
                action=action,
                value=value,
                error=error,
            )
        )

    def measure(self, series: str, where: str, value: float) -> None:
        """Hand over a sample; from any thread."""
        now_ns = self.clock.now_ns()
        self.metrics.add(now_ns, series, where, value)
        self._heed(series, value)
        if self._samplers:
            self._handed.put(Sample(at_ns=now_ns, series=series, where=where, value=value))
            self._woken.set()

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Tell a listener about every event from now on, in the loop's own thread."""
        self._listeners.append(listener)

    def sample(self, listener: Callable[[Sample], None]) -> None:
        """Tell a listener about every sample from now on, in the loop's own thread."""
        self._samplers.append(listener)

    def history(self) -> History:
        return self._history.so_far()

    def tick(self) -> None:
        """Show and save what is due, then write what has come; rest first when nothing has.

        It returns as soon as something was written, so that the caller can act on it.
        """
        now_ns = self.clock.now_ns()
        if now_ns - self._shown_ns >= SHOW_EVERY_NS:
            self._shown_ns = now_ns
            self._show()
        if now_ns - self._flushed_ns >= FLUSH_EVERY_NS:
            self._flushed_ns = now_ns
            self.metrics.flush()
        self.clock.wait(self._woken, IDLE_S)
        self._woken.clear()
        self._take_all()

    def until(self, pending: Pending, *, what: str, limit_s: float, every_s: float = 0.2) -> None:
        """Tick until `pending` answers None. Raises NotReady with the last reason."""
        deadline_ns = self.clock.now_ns() + int(limit_s * 1e9)
        while (reason := pending()) is not None:
            if self.clock.now_ns() >= deadline_ns:
                raise NotReadyInTime(what, limit_s, reason)
            ask_again_ns = self.clock.now_ns() + int(every_s * 1e9)
            while self.clock.now_ns() < ask_again_ns:
                self.tick()
        self.tick()

    def close(self) -> None:
        """Write what is left and save the metrics; the history stays readable from here on."""
        self._take_all()
        self.metrics.flush()
        self._history.close()

    def _take_all(self) -> None:
        while True:
            try:
                handed = self._handed.get_nowait()
            except queue.Empty:
                return
            if isinstance(handed, Sample):
                for sampler in self._samplers:
                    sampler(handed)
                continue
            event = self._history.append(handed)
            for listener in self._listeners:
                listener(event)
