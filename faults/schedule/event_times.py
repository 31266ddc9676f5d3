"""The moment of an event of the system: its own time stamp if it has one, else the time of its
observation.

Events are observed by polling, so they are recorded later than they happen. Whether a fault was
injected in time is judged by the system's own clock wherever an event has its stamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamquake.cluster.runtime.clock import Clock, on_run_clock_ns
from streamquake.reports.record.checkpoint_events import (
    BatchRunning,
    CheckpointAcknowledged,
    CheckpointAllAcknowledged,
    CheckpointEnd,
    CheckpointTriggered,
    CommitWritten,
    OffsetWritten,
    SinkWritten,
    checkpoint_number,
)
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.event_field import EventField
from streamquake.reports.record.job_events import (
    ExecutorAdded,
    ExecutorLost,
    JobEnded,
    JobFailing,
    JobRestarting,
    JobRestored,
    JobSubmitted,
)

STAMPS: Mapping[type[Event], EventField[float | None]] = {
    CheckpointTriggered: CheckpointTriggered.trigger_ms,
    CheckpointAcknowledged: CheckpointAcknowledged.ack_ms,
    CheckpointAllAcknowledged: CheckpointAllAcknowledged.ack_ms,
    OffsetWritten: OffsetWritten.step_ms,
    BatchRunning: BatchRunning.step_ms,
    SinkWritten: SinkWritten.step_ms,
    CommitWritten: CommitWritten.step_ms,
    ExecutorAdded: ExecutorAdded.added_ms,
    ExecutorLost: ExecutorLost.lost_ms,
    JobSubmitted: JobSubmitted.submitted_ms,
    JobFailing: JobFailing.failed_ms,
    JobRestarting: JobRestarting.restarting_ms,
    JobRestored: JobRestored.restored_at_ms,
    JobEnded: JobEnded.ended_ms,
}
"""Class of events -> the field that holds the engine's own stamp."""


def stamp_ms(event: Event) -> float | None:
    """The engine's own stamp of an event, in milliseconds since the epoch; None without one."""
    field = STAMPS.get(type(event))
    return None if field is None else field.of(event)


def later_stamps(event: Event) -> Iterator[tuple[Action, float]]:
    """The earlier steps of a checkpoint that its end reports, with more exact stamps than their own
    events have: (action, its stamp in milliseconds since the epoch)."""
    if isinstance(event, CheckpointEnd):
        if event.first_ack_ms:
            yield Action.CHECKPOINT_ACKNOWLEDGED, event.first_ack_ms
        if event.last_ack_ms:
            yield Action.CHECKPOINT_ALL_ACKNOWLEDGED, event.last_ack_ms


def moment_ns(event: Event, clock: Clock) -> int:
    """The moment of an event on the run's clock."""
    known_ms = stamp_ms(event)
    if not known_ms or known_ms < 0:
        return event.at_ns
    return min(event.at_ns, on_run_clock_ns(clock, int(known_ms) * 1_000_000))


def closes_window(opened: Event, second: str, action: Action, event: Event) -> bool:
    """Whether `action`, which `event` reports, closes the window that `opened` opened. The failure
    of the same checkpoint does, and the `second` action of the same checkpoint; so does a `second`
    action where one of the two events has no checkpoint."""
    opened_by, reported_by = checkpoint_number(opened), checkpoint_number(event)
    if action == Action.CHECKPOINT_FAILED:
        return opened_by is not None and opened_by == reported_by
    return action == second and (None in (opened_by, reported_by) or opened_by == reported_by)


def moments_in(event: Event, clock: Clock) -> Iterator[tuple[Action, int]]:
    """All actions that an event reports: (action, its moment on the run's clock, nanoseconds)."""
    yield event.action, moment_ns(event, clock)
    for action, later_ms in later_stamps(event):
        yield action, on_run_clock_ns(clock, int(later_ms) * 1_000_000)
