"""Whether a step that was to be injected between two events was, by what the record has of them.

"Before the second event" is proven only by a second event that came later, or by a sign that it
cannot come any more: the checkpoint failed or a later one completed, or the job failed.
"""

from __future__ import annotations

from streamquake.faults.schedule.event_times import closes_window, later_stamps
from streamquake.faults.schedule.step import TriggerSpec
from streamquake.harness.verdict.evidence.engine_clock import EngineClock, clock_moved
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.harness.verdict.evidence.trigger_evidence import set_off_by
from streamquake.reports.record.checkpoint_events import CheckpointCompleted, checkpoint_number
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.fault_events import FaultCalled, FaultInEffect, FaultMissedWindow
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobFailing, JobRestarting, JobRestored

JOB_FAILED = (JobFailing, JobRestarting, JobRestored)
TOLERANCE_NS = 100 * 10**6
"""The run itself judges by the clocks; a history relates them only by what was seen soonest."""


def outside_window(when: TriggerSpec, attempt: StepAttempt, history: History) -> str:
    """Why it is not known that the fault came between its two events; empty where it is, where the
    run itself says that it was late, or where the record does not say what set it off."""
    called = attempt.get(FaultCalled)
    if when.between is None or called is None or FaultMissedWindow in attempt:
        return ""
    opened = set_off_by(when, called, history)
    if opened is None:
        return ""
    return _closed_before(when.between[1], opened, attempt, history) or _never_closed(
        when.between, opened, history
    )


def _closed_before(second: str, opened: Event, attempt: StepAttempt, history: History) -> str:
    """That the window was closed when the fault was seen to act, or, by a failure of the
    checkpoint, when it was called: one that fails from then on fails by the fault."""
    seen = attempt.get(FaultInEffect)
    if seen is None or clock_moved(history):
        return ""
    called_ns = seen.called_ns or attempt[FaultCalled].at_ns
    clock = EngineClock(history)
    for event in history:
        if event.index <= opened.index:
            continue
        for action, moment_ns in clock.moments_in(event):
            limit_ns = called_ns if action == Action.CHECKPOINT_FAILED else seen.moment_ns
            late_ns = limit_ns - moment_ns
            if late_ns > TOLERANCE_NS and closes_window(opened, second, action, event):
                return (
                    f'"{action}" had closed its window {late_ns / 1e9:.1f} s before, and the '
                    "record does not call it missed"
                )
    return ""


def _never_closed(between: tuple[str, str], opened: Event, history: History) -> str:
    first, second = between
    if any(_closes(event, opened, second) for event in history if event.index > opened.index):
        return ""
    return f'the window was never closed: no "{second}" was seen after "{first}"'


def _closes(event: Event, opened: Event, second: str) -> bool:
    if isinstance(event, JOB_FAILED):
        return True
    of, by = checkpoint_number(opened), checkpoint_number(event)
    if of is not None and by is not None and isinstance(event, CheckpointCompleted) and by > of:
        return True  # the engine gives up older checkpoints then
    earlier = (action for action, _ in later_stamps(event))
    return any(closes_window(opened, second, each, event) for each in (event.action, *earlier))
