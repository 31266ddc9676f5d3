"""Whether a fault was verified again until its heal: how long before the heal the record last shows
that it was in effect or in place."""

from __future__ import annotations

from streamquake.faults.fault import faults
from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.evidence.step_attempts import (
    StepAttempt,
    first_heal_call,
    heal_called_ns,
)
from streamquake.reports.record.fault_events import (
    UNVERIFIED_NS,
    FaultEndedEarly,
    FaultInEffect,
    FaultStillInEffect,
)
from streamquake.reports.record.fault_windows import FaultWindow, fault_windows
from streamquake.reports.record.history import History

TOLERANCE_NS = 10**9
"""The run decides shortly before it records the heal."""


def not_verified_until_heal(step: Step, attempt: StepAttempt, history: History) -> str:
    """A message if the last verification was too long before the heal; else empty. The run reports
    this itself, unless a part of the record is missing."""
    began, fault = attempt[FaultInEffect], faults.get(step.fault)
    called = first_heal_call(began, history)
    if FaultEndedEarly in attempt or (called is not None and called.last_seen_ns is None):
        return ""
    ended_ns = heal_called_ns(attempt, history)
    if ended_ns is None:
        return ""
    if fault is None or not fault.lasts:
        return ""
    newest = attempt.get(FaultStillInEffect) or began
    in_place_ns = None if called is None else called.in_place_ns
    if in_place_ns is None:  # an older record has no event where the system was idle
        if fault.shows_in_place or _was_kept_down(began, history):
            return ""
        in_place_ns = newest.moment_ns
    unverified_ns = ended_ns - max(newest.moment_ns, in_place_ns)
    if unverified_ns <= UNVERIFIED_NS + TOLERANCE_NS:
        return ""
    return (
        f"the record has no check that found it in effect or in place in the "
        f"{unverified_ns / 1e9:.1f} s before its heal"
    )


def _was_kept_down(began: FaultInEffect, history: History) -> bool:
    """Whether another step kept a node of the fault down, where nothing can be verified."""
    return any(
        window.step != began.step
        and _keeps_down(window)
        and set(window.nodes) & set(began.nodes or ())
        for window in fault_windows(history)
        if window.healed_s is None or window.healed_s > began.moment_ns / 1e9
    )


def _keeps_down(window: FaultWindow) -> bool:
    fault = faults.get(window.fault)
    return fault is not None and fault.touches == "process"
