"""Whether the removal of a fault was verified on each target, after its heal was called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.fault_windows import FaultWindow

CLOCK_S = 0.01
"""Moments are converted between two clocks, and rounded."""


def not_healed(tried: Mapping[Action, Event]) -> str:
    """Why the removal of a fault that took effect is not known; empty where it is.

    A heal that failed may be tried again, and what is verified last counts. Targets that were no
    more at the heal are named by it (`gone`).
    """
    healed, failed = tried.get(Action.FAULT_HEALED), tried.get(Action.FAULT_NOT_HEALED)
    if failed is not None and (healed is None or healed.index < failed.index):
        return str(failed.value["reason"])
    if healed is None:
        return "no heal was seen"
    began, called = tried[Action.FAULT_IN_EFFECT], tried.get(Action.HEAL_CALLED)
    seen_ns = healed.value.get("seen_ns") or healed.at_ns
    if seen_ns < began.value["seen_ns"]:
        return "its removal was seen before its effect"
    if called is not None and seen_ns < called.at_ns - CLOCK_S * 1e9:
        return "its removal was seen before its heal was called"
    if (evidence := healed.value.get("evidence")) is None:
        return ""  # as in records of older versions
    known = {*evidence, *healed.value.get("gone", ())}
    if unseen := [name for name in began.value.get("nodes", ()) if name not in known]:
        return f"nothing was seen of its removal on {', '.join(unseen)}"
    return ""


def left_by_earlier_try(windows: Sequence[FaultWindow], step: int) -> str:
    """That an earlier injection of a step took effect and was never healed."""
    earlier = [window for window in windows if window.step == step][:-1]
    left = next((w for w in earlier if w.acted and w.healed_s is None), None)
    return "" if left is None else f"an injection called at {left.called_s:.1f} s was not healed"
