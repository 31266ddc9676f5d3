"""Whether the record shows that a step was injected between its two events.

"Before the second event" is proven by a later second event, or by evidence that it can no longer
happen: the checkpoint failed, a later one completed, or the job failed. A completion counts from
the earliest moment that it may have; a window that opens with all acknowledgements has only its
observation.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.faults.schedule.event_times import closes_window, later_stamps
from streamquake.faults.schedule.step import TriggerSpec
from streamquake.harness.verdict.evidence.checkpoint_completion import CompletionTimes
from streamquake.harness.verdict.evidence.engine_clock import EngineClock, clock_moved
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.harness.verdict.evidence.trigger_evidence import trigger_event
from streamquake.reports.record.checkpoint_events import (
    CheckpointAllAcknowledged,
    CheckpointCompleted,
    CheckpointEvent,
    checkpoint_number,
)
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.fault_events import FaultCalled, FaultInEffect, FaultMissedWindow
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobFailing, JobRestarting, JobRestored

JOB_FAILED = (JobFailing, JobRestarting, JobRestored)
TOLERANCE_NS = 100 * 10**6
"""The run compares the clocks directly; a history relates them only by the fastest observation."""


def outside_window(when: TriggerSpec, attempt: StepAttempt, history: History) -> str:
    """Why it is not proven that the fault was injected between its two events; empty where it is,
    where the run itself recorded that it was late, or where the record does not have the
    trigger."""
    called = attempt.get(FaultCalled)
    if when.between is None or called is None or FaultMissedWindow in attempt:
        return ""
    opened = trigger_event(when, called, history)
    if opened is None:
        return ""
    return _closed_before(when.between[1], opened, attempt, history) or _never_closed(
        when.between, opened, history
    )


def _closed_before(second: str, opened: Event, attempt: StepAttempt, history: History) -> str:
    """A message if the window had closed before the effect was observed or, by a failure of the
    checkpoint or the job, before the injection was called: a later failure is caused by the
    fault."""
    in_effect = attempt.get(FaultInEffect)
    if in_effect is None or clock_moved(history):
        return ""
    called_ns = in_effect.called_ns or attempt[FaultCalled].at_ns
    effect_ns, completions = in_effect.moment_ns, CompletionTimes(history)
    clock = EngineClock(history)
    for event in history:
        if event.index <= opened.index and not _completes(event, opened):
            continue
        for action, moment_ns in _moments_in(event, opened, effect_ns, clock, completions):
            by_second = closes_window(opened, second, action, event)
            is_regular = by_second and action != Action.CHECKPOINT_FAILED
            limit_ns = effect_ns if is_regular else called_ns
            late_ns = limit_ns - moment_ns
            ends = by_second or (action == event.action and _ends_checkpoint(event, opened))
            if ends and late_ns > TOLERANCE_NS:
                return (
                    f'"{action}" {_had(action, event, limit_ns)} closed its window '
                    f"{late_ns / 1e9:.1f} s before, and the record does not report it as missed"
                )
    return ""


def _moments_in(
    event: Event,
    opened: Event,
    effect_ns: int,
    clock: EngineClock,
    completions: CompletionTimes,
) -> Iterator[tuple[Action, int]]:
    """Everything an event reports: (action, its moment). Of a completion it is the earliest
    possible one, unless the record shows that it followed the effect."""
    for action, moment_ns in clock.moments_in(event):
        has_earlier = action == event.action and not isinstance(opened, CheckpointAllAcknowledged)
        if has_earlier and isinstance(event, CheckpointCompleted):
            yield action, completions.earliest_ns(event, effect_ns)
        else:
            yield action, moment_ns


def _completes(event: Event, opened: Event) -> bool:
    """Whether an event is the completion of the checkpoint of `opened`, also where it was observed
    first."""
    if not isinstance(event, CheckpointCompleted) or not isinstance(opened, CheckpointEvent):
        return False
    return (event.job, checkpoint_number(event)) == (opened.job, checkpoint_number(opened))


def _had(action: Action, event: Event, limit_ns: int) -> str:
    """How certain it is that an event of a moment before `limit_ns` had happened by then."""
    is_completion = isinstance(event, CheckpointCompleted) and action == event.action
    return "may have" if is_completion and limit_ns - event.at_ns <= TOLERANCE_NS else "had"


def _never_closed(between: tuple[str, str], opened: Event, history: History) -> str:
    first, second = between
    if any(_closes(event, opened, second) for event in history if event.index > opened.index):
        return ""
    return f'the window was never closed: no "{second}" was seen after "{first}"'


def _closes(event: Event, opened: Event, second: str) -> bool:
    if isinstance(event, JOB_FAILED) or _ends_checkpoint(event, opened):
        return True
    earlier = (action for action, _ in later_stamps(event))
    return any(closes_window(opened, second, each, event) for each in (event.action, *earlier))


def _ends_checkpoint(event: Event, opened: Event) -> bool:
    """Whether the checkpoint of `opened` can no longer complete: the job failed, or a later one
    completed, so that the engine aborts older ones."""
    opened_number, number = checkpoint_number(opened), checkpoint_number(event)
    if opened_number is None or not isinstance(opened, CheckpointEvent):
        return False
    if isinstance(event, JOB_FAILED):
        return True
    return isinstance(event, CheckpointCompleted) and (number or 0) > opened_number
