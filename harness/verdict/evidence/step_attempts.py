"""The newest try of a step: one that missed its window may have been struck again."""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.history import History

OF_STEPS = (
    Action.FAULT_CALLED,
    Action.FAULT_IN_EFFECT,
    Action.FAULT_NOT_IN_EFFECT,
    Action.HEAL_CALLED,
    Action.FAULT_HEALED,
    Action.FAULT_NOT_HEALED,
    Action.FAULT_SKIPPED,
    Action.FAULT_MISSED_WINDOW,
    Action.FAULT_ENDED_EARLY,
    Action.FAULT_NOT_VERIFIED,
    Action.FAULT_STILL_IN_EFFECT,
)


def last_try(history: History, step: int) -> Mapping[Action, Event]:
    """What happened to a step since it was called last, the newest event of each kind."""
    found: dict[Action, Event] = {}
    for event in history.of(*OF_STEPS):
        if event.value.get("step") == step:
            if event.action == Action.FAULT_CALLED:
                found = {}
            found[event.action] = event
    return found
