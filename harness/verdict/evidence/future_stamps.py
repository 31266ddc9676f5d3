"""Whether the engine stamped an event later than it was observed.

The history relates the engine's stamps to the run's clock only by the fastest observation. A stamp
that is too late would be just that, and would move all others. So the fastest one, of a checkpoint
or of another event, is compared with the fastest of all the others.
"""

from __future__ import annotations

from collections.abc import Hashable

from streamquake.faults.schedule.event_times import stamp_ms
from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, clock_moved
from streamquake.reports.record.checkpoint_events import (
    CheckpointEnd,
    CheckpointEvent,
    checkpoint_number,
)
from streamquake.reports.record.event import Event
from streamquake.reports.record.history import History

ENOUGH = 6
"""Fewer checkpoints and other events may all but one have been observed late."""


def stamped_after_its_observation(history: History) -> str | None:
    """A message about the event with a stamp that is later than its observation; None without one,
    or where a fault moved the clocks, or with too few stamps to compare."""
    if clock_moved(history):
        return None
    fastest: dict[Hashable, tuple[float, int, Event]] = {}
    for event in history:
        if not (recorded_ms := _stamp_ms(event)) or recorded_ms < 0:
            continue
        own: Hashable = event.index
        if isinstance(event, CheckpointEvent):
            own = event.job, checkpoint_number(event)
        found = event.at_s - recorded_ms / 1000, event.index, event
        fastest[own] = min(fastest.get(own, found), found)
    if len(fastest) < ENOUGH:
        return None
    (behind_s, _, event), (usual_s, _, _) = sorted(fastest.values())[:2]
    if usual_s - behind_s <= STAMPS_S:
        return None
    return (
        f"`{event.action}` at {event.at_s:.1f} s has a stamp that is {usual_s - behind_s:,.1f} s "
        "later, by all other stamps"
    )


def _stamp_ms(event: Event) -> float | None:
    """The stamp of an event; of the end of a checkpoint, that of its trigger."""
    return event.trigger_ms if isinstance(event, CheckpointEnd) else stamp_ms(event)
