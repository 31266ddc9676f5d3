"""The engine's own time stamps on the run's clock, from the history alone.

The harness polls the engine, so it may observe an event after another event that the first one
caused. The engine's stamps are exact, but in milliseconds since 1970, which the history does not
relate to the run's clock. The event with the shortest delay between stamp and observation gives the
difference, with an error of a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from streamquake.faults.schedule.event_times import later_stamps, stamp_ms
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.fault_events import FaultCalled
from streamquake.reports.record.history import History

CLOCK_FAULT = "clock_skew"
"""The fault that moves the engine's stamps: they no longer relate to the run's clock."""
STAMP_NS = 100_000_000
"""The tolerance of a stamp of the engine: a history relates these stamps to the run's clock only by
the fastest observation."""

STAMPS_S = 1.0
"""The tolerance of a stamp of the machine's clock on the run's clock, by the fastest observation
alone; the two are at most 0.8 s apart in recorded runs."""


def clock_moved(history: History) -> bool:
    """Whether a fault moved the clock of some node."""
    return bool(clock_faults(history))


def clock_faults(history: History) -> list[FaultCalled]:
    """The calls of faults that move the clock of some node."""
    return [event for event in history.of(FaultCalled) if event.fault == CLOCK_FAULT]


class EngineClock:
    """Converts the engine's stamps to the run's clock; where a fault moved the clocks, it gives the
    moment of the observation instead."""

    def __init__(self, history: History) -> None:
        self._offset_ns: int | None = None
        if clock_moved(history):
            return
        behind = (_behind_ns(event, stamp_ms(event)) for event in history)
        self._offset_ns = min((lag for lag in behind if lag is not None), default=None)

    def moment_ns(self, event: Event) -> int:
        """When the event happened; when it was observed where it has no stamp. Never later than
        that."""
        return self.stamped_ns(event, stamp_ms(event))

    def moments_in(self, event: Event) -> Iterator[tuple[Action, int]]:
        """Everything an event reports: (action, moment)."""
        yield event.action, self.moment_ns(event)
        for action, later_ms in later_stamps(event):
            yield action, self.stamped_ns(event, later_ms)

    def run_clock_ns(self, epoch_ms: float) -> int | None:
        """A moment of the machine's clock, epoch milliseconds, on the run's clock; None where the
        history does not relate the two."""
        return None if self._offset_ns is None else int(epoch_ms * 1e6) + self._offset_ns

    def moments_of(
        self, evidence: Mapping[str, Any] | None, field: str
    ) -> Iterator[tuple[str, int]]:
        """Each target of an evidence whose observation `field` is a moment of the machine's clock
        in ISO 8601, with that moment on the run's clock; none where the history does not relate the
        two."""
        for target, observed in (evidence or {}).items():
            stamp = observed.get(field) if isinstance(observed, Mapping) else None
            epoch_ms = epoch_ms_of(stamp)
            moment_ns = None if epoch_ms is None else self.run_clock_ns(epoch_ms)
            if moment_ns is not None:
                yield target, moment_ns

    def stamped_ns(self, event: Event, recorded_ms: float | None) -> int:
        """The moment of a stamp that an event holds; the event's observation where the stamp is
        None."""
        behind_ns = _behind_ns(event, recorded_ms)
        if behind_ns is None or self._offset_ns is None:
            return event.at_ns
        return event.at_ns - max(0, behind_ns - self._offset_ns)


def epoch_ms_of(stamp: object) -> float | None:
    """A moment in ISO 8601 as epoch milliseconds; None for what is no such text."""
    with suppress(ValueError, OverflowError):
        if isinstance(stamp, str):
            return datetime.fromisoformat(stamp).timestamp() * 1000
    return None


def _behind_ns(event: Event, recorded_ms: float | None) -> int | None:
    """The run's clock at the observation, minus the stamp; only differences between events are
    meaningful."""
    if recorded_ms is None or recorded_ms <= 0:
        return None
    return event.at_ns - int(recorded_ms) * 1_000_000
