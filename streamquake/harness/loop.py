"""The loop: the one thread that writes the history.

Workers (load, engine followers, container events, strikes) only hand it notes. Between ticks it
shows progress and saves the metrics gathered so far.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from streamquake.cluster.clock import Clock
from streamquake.cluster.waiting import NotReady, Pending
from streamquake.reports.event import Action, Event, Kind, Note
from streamquake.reports.history import History, HistoryWriter
from streamquake.reports.metrics import Metrics

IDLE_S = 0.01
"""How long the loop rests when there is nothing to do; bounds how late a trigger is noticed."""
FLUSH_EVERY_NS = 10 * 10**9
SHOW_EVERY_NS = 250 * 10**6


class Loop:
    """Takes notes from every thread, gives them their place, and tells the listeners."""

    def __init__(
        self, history: HistoryWriter, metrics: Metrics, clock: Clock, show: Callable[[], None],
        heed: Callable[[str, float], None] = lambda series, value: None,
    ) -> None:  # fmt: skip
        self.clock = clock
        self.metrics = metrics
        self._history = history
        self._notes: queue.SimpleQueue[Note] = queue.SimpleQueue()
        self._listeners: list[Callable[[Event], None]] = []
        self._show = show
        self._heed = heed
        self._flushed_ns = 0
        self._shown_ns = 0

    def emit(self, note: Note) -> None:
        """Hand over a note; from any thread."""
        self._notes.put(note)

    def say(
        self, action: Action, *, kind: Kind = Kind.INFO, process: str = "harness",
        error: str | None = None, **value: Any,
    ) -> None:  # fmt: skip
        """Hand over a note about something that happens now; from any thread."""
        self.emit(
            Note(
                at_ns=self.clock.now_ns(), process=process, kind=kind, action=action, value=value,
                error=error,
            )
        )  # fmt: skip

    def measure(self, series: str, where: str, value: float) -> None:
        """Hand over a sample; from any thread."""
        self.metrics.add(self.clock.now_ns(), series, where, value)
        self._heed(series, value)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Tell a listener about every event from now on, in the loop's own thread."""
        self._listeners.append(listener)

    def history(self) -> History:
        return self._history.so_far()

    def tick(self) -> None:
        """Write what has come, then show and save what is due; rest when nothing came."""
        if not self._take_all():
            self.clock.sleep(IDLE_S)
        now_ns = self.clock.now_ns()
        if now_ns - self._shown_ns >= SHOW_EVERY_NS:
            self._shown_ns = now_ns
            self._show()
        if now_ns - self._flushed_ns >= FLUSH_EVERY_NS:
            self._flushed_ns = now_ns
            self.metrics.flush()

    def until(self, pending: Pending, *, what: str, limit_s: float, every_s: float = 0.2) -> None:
        """Tick until `pending` answers None. Raises NotReady with the last reason."""
        deadline_ns = self.clock.now_ns() + int(limit_s * 1e9)
        while (reason := pending()) is not None:
            if self.clock.now_ns() >= deadline_ns:
                raise NotReady(what, limit_s, reason)
            ask_again_ns = self.clock.now_ns() + int(every_s * 1e9)
            while self.clock.now_ns() < ask_again_ns:
                self.tick()
        self.tick()

    def close(self) -> None:
        """Write what is left and save the metrics; the history stays readable from here on."""
        self._take_all()
        self.metrics.flush()
        self._history.close()

    def _take_all(self) -> int:
        taken = 0
        while True:
            try:
                note = self._notes.get_nowait()
            except queue.Empty:
                return taken
            taken += 1
            event = self._history.append(note)
            for listener in self._listeners:
                listener(event)
