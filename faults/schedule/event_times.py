"""When something of the system happened: by its own time stamp where it has one, else when seen.

Events are seen by asking again and again, so their place in the history is later than the thing
itself; whether a fault struck in time is judged by the system's own clock wherever that is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamquake.cluster.runtime.clock import Clock, on_run_clock_ns
from streamquake.reports.record.checkpoint_events import checkpoint_number
from streamquake.reports.record.event import Action, Event

STAMPS: Mapping[Action, str] = {
    Action.CHECKPOINT_TRIGGERED: "trigger_ms",
    Action.CHECKPOINT_ACKNOWLEDGED: "ack_ms",
    Action.CHECKPOINT_ALL_ACKNOWLEDGED: "ack_ms",
    Action.OFFSET_WRITTEN: "step_ms",
    Action.BATCH_RUNNING: "step_ms",
    Action.SINK_WRITTEN: "step_ms",
    Action.COMMIT_WRITTEN: "step_ms",
    Action.EXECUTOR_ADDED: "added_ms",
    Action.EXECUTOR_LOST: "lost_ms",
    Action.JOB_SUBMITTED: "submitted_ms",
    Action.JOB_FAILING: "failed_ms",
    Action.JOB_RESTARTING: "restarting_ms",
    Action.JOB_RESTORED: "restored_at_ms",
    Action.JOB_ENDED: "ended_ms",
}
"""Event -> the value that holds the engine's own stamp, milliseconds since 1970."""
LATER_STAMPS: Mapping[str, Action] = {
    "first_ack_ms": Action.CHECKPOINT_ACKNOWLEDGED,
    "last_ack_ms": Action.CHECKPOINT_ALL_ACKNOWLEDGED,
}
"""What the end of a checkpoint tells of earlier steps of it, more exactly than they could."""


def moment_ns(event: Event, clock: Clock) -> int:
    """The moment of an event on the run's clock."""
    stamp_ms = event.value.get(STAMPS.get(event.action, ""))
    if not stamp_ms or stamp_ms < 0:
        return event.at_ns
    return min(event.at_ns, on_run_clock_ns(clock, int(stamp_ms) * 1_000_000))


def closes_window(opened: Event, second: str, action: Action, event: Event) -> bool:
    """Whether one of the things that an event tells about closes the window that another opened:
    the `second` event of the same checkpoint or of none, or that checkpoint's failure."""
    of, by = (checkpoint_number(each) for each in (opened, event))
    if action == Action.CHECKPOINT_FAILED:
        return of is not None and of == by
    return action == second and (of is None or by is None or of == by)


def moments_in(event: Event, clock: Clock) -> Iterator[tuple[Action, int]]:
    """Everything an event tells about: (what happened, when on the run's clock)."""
    yield event.action, moment_ns(event, clock)
    for key, action in LATER_STAMPS.items():
        if stamp_ms := event.value.get(key):
            yield action, on_run_clock_ns(clock, int(stamp_ms) * 1_000_000)
