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
    CheckpointCompleted,
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
        # A failed one was acknowledged by some subtasks, perhaps not by all.
        if event.last_ack_ms and isinstance(event, CheckpointCompleted):
            yield Action.CHECKPOINT_ALL_ACKNOWLEDGED, event.last_ack_ms


def acknowledged_ms(completed: CheckpointCompleted) -> float | None:
    """The last acknowledgement of a checkpoint, at which the engine's duration ends, in
    milliseconds since the epoch: it may have completed right then. None of a micro-batch, and where
    it was not measured."""
    trigger_ms, duration_ms = completed.trigger_ms, completed.duration_ms
    if completed.is_micro_batch or not trigger_ms or duration_ms is None or duration_ms < 0:
        return None
    return trigger_ms + duration_ms


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


def earliest_moments(event: Event, opened: Event, clock: Clock) -> Iterator[tuple[Action, int]]:
    """All actions that an event reports, each with its earliest possible moment on the run's clock,
    nanoseconds. The engine gives no stamp of a completion, only of the last acknowledgement before
    it; of a window that `opened` then, a completion has only its observation."""
    yield event.action, moment_ns(event, clock)
    if isinstance(event, CheckpointCompleted) and not isinstance(opened, CheckpointAllAcknowledged):
        done_ms = acknowledged_ms(event)
        if done_ms is not None:
            yield event.action, on_run_clock_ns(clock, int(done_ms) * 1_000_000)
    for action, later_ms in later_stamps(event):
        yield action, on_run_clock_ns(clock, int(later_ms) * 1_000_000)
