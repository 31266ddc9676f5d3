"""Whether a fault lasted as planned: for its `for_s`, or until the end of the schedule."""

from __future__ import annotations

from streamquake.faults.fault import faults
from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.evidence.heal_evidence import CLOCK_S
from streamquake.harness.verdict.evidence.phases import HEAL, phase_began
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, heal_called_ns
from streamquake.reports.record.fault_events import (
    FaultEndedEarly,
    FaultHealed,
    FaultInEffect,
    FaultMissedWindow,
)
from streamquake.reports.record.history import History


def early_end(step: Step, attempt: StepAttempt) -> str:
    """A message if the effect was found ended before the heal: the planned duration, the actual
    one, the reason; else empty."""
    ended = attempt.get(FaultEndedEarly)
    if ended is None:
        return ""
    began_ns = attempt[FaultInEffect].seen_ns
    last_ns = began_ns if ended.last_seen_ns is None else ended.last_seen_ns
    last_s = (last_ns - began_ns) / 1e9
    found_ended_s = (ended.moment_ns - began_ns) / 1e9
    return (
        f"it should have lasted {_planned_text(step)}, was verified last after {last_s:.1f} s and "
        f"found ended after {found_ended_s:.1f} s: {ended.reason}"
    )


def early_heal(step: Step, attempt: StepAttempt, history: History) -> str:
    """A message if the heal was called before the fault had lasted as long as planned; else empty.
    A fault that missed its window is healed at once."""
    ended_ns = _ended_ns(attempt, history)
    if ended_ns is None or FaultMissedWindow in attempt:
        return ""
    lasted_s = (ended_ns - attempt[FaultInEffect].seen_ns) / 1e9
    if step.for_s is not None:
        is_early = lasted_s < step.for_s - CLOCK_S
    else:
        end = phase_began(history, HEAL) if _lasts(step) else None
        is_early = end is not None and ended_ns < end.at_ns - CLOCK_S * 1e9
    if not is_early:
        return ""
    planned = _planned_text(step)
    return f"it should have lasted {planned}, and its heal was called after {lasted_s:.1f} s"


def _planned_text(step: Step) -> str:
    return "until the end of the schedule" if step.for_s is None else f"for {step.for_s:g} s"


def _ended_ns(attempt: StepAttempt, history: History) -> int | None:
    """When the heal was called first: a failed one may already have removed the fault. Of an older
    record, when the removal was recorded."""
    healed = attempt.get(FaultHealed)
    return heal_called_ns(attempt, history) or (None if healed is None else healed.at_ns)


def _lasts(step: Step) -> bool:
    """Whether the fault has an effect that lasts; after a restart of the job, for example, there is
    nothing to heal."""
    return step.fault not in faults or faults[step.fault].lasts
