"""When a fault was in effect: the spans of time between being seen to bite and being healed."""

from __future__ import annotations

from dataclasses import dataclass

from streamquake.reports.event import Action, Event
from streamquake.reports.history import History


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One strike's time in effect, in seconds on the run's clock."""

    start_s: float
    end_s: float


def effects_of(history: History, fault: str) -> tuple[Effect, ...]:
    """Of every strike of a fault, by its name: from when it was seen to bite until its heal was
    called, or until the run's end where none was. Empty when it never was in effect."""
    return tuple(
        Effect(start_s=struck.value["seen_ns"] / 1e9, end_s=_ended_s(history, struck))
        for struck in history.of(Action.FAULT_IN_EFFECT)
        if struck.value.get("fault") == fault
    )


def _ended_s(history: History, struck: Event) -> float:
    heals = history.of(Action.HEAL_CALLED, Action.FAULT_HEALED)
    ends = (
        heal.at_s
        for heal in heals
        if heal.index > struck.index and heal.value.get("step") == struck.value.get("step")
    )
    return next(ends, history[-1].at_s)
