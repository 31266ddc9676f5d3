"""The event loop: the one thread that writes the history.

Background threads (load, engine followers, container events, injections) queue events and samples
for it. It sleeps until one arrives, so that a trigger fires at once. Between them it shows the
progress and saves the metrics.
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
from streamquake.reports.record.history import History, HistoryWriter, usual_kind
from streamquake.reports.record.metrics import Metrics

IDLE_S = 0.01
"""The longest wait for an event; a trigger with a known moment fires at most this late."""
FLUSH_EVERY_NS = 10 * 10**9
SHOW_EVERY_NS = 250 * 10**6
CLOCK_SET_NS = 50 * 10**6
"""A wall clock that was set by less changes no verdict, and reading the two clocks takes time."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One value of a series at a place (a node, a task, a topic), on the run's clock."""

    at_ns: int
    series: str
    where: str
    value: float


class EventLoop:
    """Takes events from every thread, appends them to the history, and passes them to the
    listeners."""

    def __init__(
        self,
        history: HistoryWriter,
        metrics: Metrics,
        clock: Clock,
        show: Callable[[], None],
        on_sample: Callable[[str, float], None] = lambda series, value: None,
    ) -> None:
        self.clock = clock
        self.metrics = metrics
        self._history = history
        self._inbox: queue.SimpleQueue[EventDraft | Sample] = queue.SimpleQueue()
        self._woken = threading.Event()
        self._listeners: list[Callable[[Event], None]] = []
        self._sample_listeners: list[Callable[[Sample], None]] = []
        self._show = show
        self._on_sample = on_sample
        self._flushed_ns = 0
        self._shown_ns = 0
        self._clock_set_by_ns = 0

    def record_event(self, draft: EventDraft) -> None:
        """Queue an event for the history; callable from any thread."""
        self._inbox.put(draft)
        self._woken.set()

    def wake(self) -> None:
        """Wake the loop, because the state of a step has changed; callable from any thread."""
        self._woken.set()

    def record(
        self,
        action: Action,
        *,
        kind: Kind | None = None,
        process: str = "harness",
        error: str | None = None,
        **value: Any,
    ) -> None:
        """Queue an event that happens now, of the usual kind of its action where none is given;
        callable from any thread."""
        self.record_event(
            EventDraft(
                at_ns=self.clock.now_ns(),
                process=process,
                kind=kind or usual_kind(action),
                action=action,
                value=value,
                error=error,
            )
        )

    def measure(self, series: str, where: str, value: float) -> None:
        """Store a sample, and queue it for the listeners; callable from any thread."""
        now_ns = self.clock.now_ns()
        self.metrics.add(now_ns, series, where, value)
        self._on_sample(series, value)
        if self._sample_listeners:
            self._inbox.put(Sample(at_ns=now_ns, series=series, where=where, value=value))
            self._woken.set()

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Pass every event from now on to a listener, in the loop's own thread."""
        self._listeners.append(listener)

    def listen_to_samples(self, listener: Callable[[Sample], None]) -> None:
        """Pass every sample from now on to a listener, in the loop's own thread."""
        self._sample_listeners.append(listener)

    def history(self) -> History:
        """The events recorded so far."""
        return self._history.so_far()

    def tick(self, idle_s: float = IDLE_S) -> None:
        """Show the progress, look at the wall clock and save the metrics if they are due, wait
        `idle_s` for an event, then write the queued events.

        It returns after one write, so that the caller can react to the events.
        """
        now_ns = self.clock.now_ns()
        if now_ns - self._shown_ns >= SHOW_EVERY_NS:
            self._shown_ns = now_ns
            self._show()
            self._watch_wall_clock()
        if now_ns - self._flushed_ns >= FLUSH_EVERY_NS:
            self._flushed_ns = now_ns
            self.metrics.flush()
        self.clock.wait(self._woken, idle_s)
        self._woken.clear()
        self._process_inbox()

    def wait_until(
        self, pending: Pending, *, what: str, limit_s: float, every_s: float = 0.2
    ) -> None:
        """Tick until `pending` returns None. Raises NotReadyInTime with the last reason."""
        deadline_ns = self.clock.now_ns() + int(limit_s * 1e9)
        while (reason := pending()) is not None:
            if self.clock.now_ns() >= deadline_ns:
                raise NotReadyInTime(what, limit_s, reason)
            next_poll_ns = self.clock.now_ns() + int(every_s * 1e9)
            while (left_ns := next_poll_ns - self.clock.now_ns()) > 0:
                self.tick(left_ns / 1e9)
        self.tick()

    def close(self) -> None:
        """Write the queued events and save the metrics; the history stays readable."""
        self._process_inbox()
        self.metrics.flush()
        self._history.close()

    def _watch_wall_clock(self) -> None:
        by_ns = self.clock.set_by_ns() - self._clock_set_by_ns
        if abs(by_ns) >= CLOCK_SET_NS:
            self._clock_set_by_ns += by_ns
            self.record(Action.HOST_CLOCK_SET, by_s=round(by_ns / 1e9, 3))

    def _process_inbox(self) -> None:
        while True:
            try:
                received = self._inbox.get_nowait()
            except queue.Empty:
                return
            if isinstance(received, Sample):
                for on_sample in self._sample_listeners:
                    on_sample(received)
                continue
            event = self._history.append(received)
            for listener in self._listeners:
                listener(event)
