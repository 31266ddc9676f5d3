"""Whether a step that was to strike between two events did, by what the record has of them.

"Before the second event" is proven only by a second event that came later, or by a sign that it
cannot come any more: the checkpoint failed or a later one completed, or the job failed.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.faults.schedule.event_times import LATER_STAMPS, closes_window
from streamquake.faults.schedule.step import TriggerSpec
from streamquake.harness.verdict.evidence.engine_clock import EngineClock, clock_moved
from streamquake.harness.verdict.evidence.trigger_evidence import set_off_by
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.history import History

JOB_FAILED = (Action.JOB_FAILING, Action.JOB_RESTARTING, Action.JOB_RESTORED)
TOLERANCE_NS = 100 * 10**6
"""The run itself judges by the clocks; a history relates them only by what was seen soonest."""


def outside_window(when: TriggerSpec, tried: Mapping[Action, Event], history: History) -> str:
    """Why it is not known that the fault came between its two events; empty where it is, where the
    run itself says that it was late, or where the record does not say what set it off."""
    called = tried.get(Action.FAULT_CALLED)
    if when.between is None or called is None or Action.FAULT_MISSED_WINDOW in tried:
        return ""
    opened = set_off_by(when, called, history)
    if opened is None:
        return ""
    return _closed_before(when.between[1], opened, tried, history) or _never_closed(
        when.between, opened, history
    )


def _closed_before(
    second: str, opened: Event, tried: Mapping[Action, Event], history: History
) -> str:
    """That the window was closed when the fault was seen to act, or, by a failure of the
    checkpoint, when it was called: one that fails from then on fails by the fault."""
    seen = tried.get(Action.FAULT_IN_EFFECT)
    if seen is None or clock_moved(history):
        return ""
    seen_ns = seen.value.get("seen_ns") or seen.at_ns
    called_ns = seen.value.get("called_ns") or tried[Action.FAULT_CALLED].at_ns
    clock = EngineClock(history)
    for event in history:
        if event.index <= opened.index:
            continue
        for action, moment_ns in clock.moments_in(event):
            limit_ns = called_ns if action == Action.CHECKPOINT_FAILED else seen_ns
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
    if event.action in JOB_FAILED:
        return True
    of, by = (each.value.get("checkpoint") for each in (opened, event))
    known = None not in (of, by)
    if event.action == Action.CHECKPOINT_COMPLETED and known and int(by or 0) > int(of or 0):
        return True  # the engine gives up older checkpoints then
    recorded = (LATER_STAMPS[key] for key in LATER_STAMPS if event.value.get(key))
    return any(closes_window(opened, second, each, event) for each in (event.action, *recorded))
