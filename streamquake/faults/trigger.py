"""Triggers: when a fault strikes, counted from steady state on."""

from __future__ import annotations

from streamquake.faults.fault import When
from streamquake.reports.event import Event


class Trigger:
    """Watches the history for one step; `due_ns` is the moment to strike once it is known."""

    def __init__(self, when: When, steady_ns: int) -> None:
        self._when = when
        self._seen = 0
        self.due_ns: int | None = None
        self.event: Event | None = None
        """The event that set it off, for events."""
        if when.after_s is not None:
            self.due_ns = steady_ns + int(when.after_s * 1e9)

    def see(self, event: Event) -> None:
        """Count an event; the nth of the awaited kind sets the moment."""
        if self.due_ns is not None or event.action != self._when.event:
            return
        self._seen += 1
        if self._seen == self._when.nth:
            self.event = event
            self.due_ns = event.at_ns + int(self._when.delay_s * 1e9)

    def is_due(self, now_ns: int) -> bool:
        return self.due_ns is not None and now_ns >= self.due_ns

    def missing(self) -> str:
        """Why it has not struck, for the reader."""
        return (
            f'"{self._when.event}" was seen {self._seen} of {self._when.nth} times '
            "since steady state"
        )
