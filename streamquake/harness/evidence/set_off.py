"""What set a fault off, by the record: the event that its trigger waited for, or the moment."""

from __future__ import annotations

from streamquake.faults.step import When
from streamquake.harness.evidence.heal_evidence import CLOCK_S
from streamquake.reports.event import Action, Event
from streamquake.reports.history import History

DISTURB = "disturb"
"""The phase from whose beginning on triggers count."""


def set_off_by(when: When, called: Event, history: History) -> Event | None:
    """The event that the trigger waited for: the one that the call names or, as in records of older
    versions, the newest before the call. None where there is none."""
    action = _awaited(when)
    index = called.value.get("trigger_index")
    if index is None:
        return next((e for e in reversed(history[: called.index]) if e.action == action), None)
    event = history[index] if 0 <= index < called.index else None
    return event if event is not None and event.action == action else None


def not_set_off(when: When, called: Event | None, history: History) -> str:
    """Why the record does not show that the fault struck when its trigger says; empty where it
    does, of triggers by a metric, and where the call is not recorded."""
    if called is None or when.metric is not None:
        return ""
    if when.after_s is not None:
        return _too_early(when.after_s, called, history)
    if set_off_by(when, called, history) is not None:
        return ""
    return f'it should have struck {when}, and no "{_awaited(when)}" set it off'


def _awaited(when: When) -> str:
    first, _ = when.between or ("", "")
    return when.event or first or Action.FAULT_IN_EFFECT


def _too_early(after_s: float, called: Event, history: History) -> str:
    began = [e.at_s for e in history.of(Action.PHASE) if e.value.get("phase") == DISTURB]
    came_s = called.at_s - (began[0] if began else 0.0)
    if came_s >= after_s - CLOCK_S:
        return ""
    return (
        f"it should have struck {after_s:g} s after steady state, and was called at {came_s:.1f} s"
    )
