"""What set a fault off, by the record: the event that its trigger waited for, or the moment."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.faults.schedule.trigger import referenced_step
from streamquake.harness.verdict.evidence.engine_clock import EngineClock, clock_moved
from streamquake.harness.verdict.evidence.heal_evidence import CLOCK_S
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.fault_events import FaultCalled, FaultEvent, FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import PhaseBegan

DISTURB = "disturb"
"""The phase from whose beginning on triggers count."""
STAMP_S = 0.1
"""A delay is counted by the engine's stamps, which a history relates to the run's clock only by
what was seen soonest."""


def set_off_by(when: TriggerSpec, called: FaultCalled, history: History) -> Event | None:
    """The event that the trigger waited for: the one that the call names or, as in records of older
    versions, the newest before the call. None where there is none."""
    action = _awaited(when)
    index = called.trigger_index
    if index is None:
        return next((e for e in reversed(history[: called.index]) if e.action == action), None)
    event = history[index] if 0 <= index < called.index else None
    return event if event is not None and event.action == action else None


def not_set_off(
    when: TriggerSpec, called: FaultCalled | None, history: History, steps: Sequence[Step] = ()
) -> str:
    """Why the record does not show that the fault was injected by its trigger, or later; empty
    where it does, of triggers by a metric, and where the call is not recorded. `steps` are those
    before it in the schedule."""
    if called is None or when.metric is not None:
        return ""
    if when.after_s is not None:
        return _too_early(when.after_s, called, history)
    try:
        could = _awaited_ones(when, called, history, steps)
    except LookupError as error:
        return f"it should have been injected {when}, and {error}"
    if not could:
        return f'it should have been injected {when}, and no "{_awaited(when)}" set it off'
    return _too_soon(when, could[0], called, history)


def _awaited_ones(
    when: TriggerSpec, called: FaultCalled, history: History, steps: Sequence[Step]
) -> Sequence[Event]:
    """The events that may have set it off: the nth since steady state and all later ones before the
    call, or of these the one that the call names. Raises LookupError."""
    steady = _steady(history)
    meant = None if when.effect_of is None else referenced_step(when, steps)
    found = [
        event
        for event in history
        if event.action == _awaited(when)
        and (steady is None or event.index > steady.index)
        and event.index < called.index
        and (meant is None or (isinstance(event, FaultEvent) and event.step == meant))
    ][when.nth - 1 :]
    index = called.trigger_index
    return found if index is None else [event for event in found if event.index == index]


def _too_soon(when: TriggerSpec, event: Event, called: FaultCalled, history: History) -> str:
    """That the call came before the delay after an event was over. Where a fault moved the clocks,
    the moment of an event that the engine stamps is not known."""
    if isinstance(event, FaultInEffect):
        moment_ns = event.moment_ns
    elif clock_moved(history):
        return ""
    else:
        moment_ns = EngineClock(history).moment_ns(event)
    after_s = (called.at_ns - moment_ns) / 1e9
    if after_s >= when.delay_s - (CLOCK_S if isinstance(event, FaultInEffect) else STAMP_S):
        return ""
    return f"it should have been injected {when}, and was called {after_s:.1f} s after that"


def _steady(history: History) -> Event | None:
    """The beginning of the disturbance, of which the system is in its steady state; None where it
    is not recorded."""
    phases = history.of(PhaseBegan)
    return next((event for event in phases if event.phase == DISTURB), None)


def _awaited(when: TriggerSpec) -> str:
    first, _ = when.between or ("", "")
    return when.event or first or Action.FAULT_IN_EFFECT


def _too_early(after_s: float, called: FaultCalled, history: History) -> str:
    steady = _steady(history)
    came_s = called.at_s - (0.0 if steady is None else steady.at_s)
    if came_s >= after_s - CLOCK_S:
        return ""
    due = f"it should have been injected {after_s:g} s after steady state"
    return f"{due}, and was called at {came_s:.1f} s"
