"""Whether the removal of a fault was verified on each target, after its heal was called."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, first_heal_call
from streamquake.reports.record.fault_events import (
    FaultHealed,
    FaultInEffect,
    FaultNotHealed,
    HealCalled,
)
from streamquake.reports.record.fault_windows import FaultWindow
from streamquake.reports.record.history import History

CLOCK_S = 0.01
"""The tolerance for moments that are converted between two clocks and rounded."""


def not_healed(attempt: StepAttempt, history: History) -> str:
    """Why the heal of a fault that took effect is not verified; empty where it is.

    A failed heal may be attempted again, and the last verification counts. A target that the heal
    lists as removed (`gone`) has none: nothing is removed during a run.
    """
    healed, failed = attempt.get(FaultHealed), attempt.get(FaultNotHealed)
    if failed is not None and (healed is None or healed.index < failed.index):
        return failed.reason or "its removal was not seen"
    if healed is None:
        return "no heal was seen"
    began, called = attempt[FaultInEffect], attempt.get(HealCalled)
    if healed.moment_ns < began.seen_ns:
        return "its removal was seen before its effect"
    if called is None and healed.evidence is not None and began.evidence:
        return "no call of its heal is recorded"
    if called is not None and min(called.at_ns - began.seen_ns, called.index - began.index) < 0:
        return "its heal was called before its effect was seen"
    heal_ns = healed.moment_ns if healed.called_ns is None else healed.called_ns
    if _seen_before_call(began, history):
        return "its removal was seen before its heal was called"
    if called is not None and min(heal_ns, healed.moment_ns) < called.at_ns - CLOCK_S * 1e9:
        return "its removal was seen before its heal was called"
    if healed.evidence is None and not began.evidence:
        return ""  # records of older versions have no evidence
    if healed.evidence is not None and healed.value.get("seen_ns") is None:
        return "the moment of its removal is not recorded"
    if unseen := sorted({*(began.nodes or ())} - healed.observed_targets):
        return f"no removal was seen on {', '.join(unseen)}"
    return ""


def _seen_before_call(began: FaultInEffect, history: History) -> bool:
    """Whether a removal is recorded before the first call of the heal."""
    called = first_heal_call(began, history)
    return called is not None and any(
        event.step == began.step and began.index < event.index < called.index
        for event in history.of(FaultHealed)
    )


def unhealed_earlier_attempt(windows: Sequence[FaultWindow], step: int) -> str:
    """A message if an earlier injection of a step took effect and was never healed; else empty."""
    earlier = [window for window in windows if window.step == step][:-1]
    left = next((w for w in earlier if w.acted and w.healed_s is None), None)
    return "" if left is None else f"an injection called at {left.called_s:.1f} s was not healed"
