"""The recorded trigger of a fault: the event that the trigger waited for, or the moment."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.faults.schedule.trigger import reaches, referenced_step
from streamquake.harness.verdict.evidence.engine_clock import STAMP_NS, EngineClock, clock_moved
from streamquake.harness.verdict.evidence.heal_evidence import CLOCK_S
from streamquake.harness.verdict.evidence.phases import DISTURB, phase_began
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.fault_events import FaultCalled, FaultEvent, FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import RecordsSent


def trigger_event(when: TriggerSpec, called: FaultCalled, history: History) -> Event | None:
    """The event that the trigger waited for: the one that the call names or, in records of older
    versions, the newest before the call. None where there is none."""
    action = _awaited_action(when)
    index = called.trigger_index
    if index is None:
        return next((e for e in reversed(history[: called.index]) if e.action == action), None)
    event = history[index] if 0 <= index < called.index else None
    return event if event is not None and event.action == action else None


def trigger_problem(
    when: TriggerSpec, called: FaultCalled | None, history: History, steps: Sequence[Step] = ()
) -> str:
    """Why the record does not show that the fault was injected by its trigger, or later. Empty
    where it does, for triggers by a metric, and where the call is not recorded. `steps` are the
    earlier steps of the schedule."""
    if called is None or when.metric is not None:
        return ""
    if when.after_s is not None:
        return _too_early(when.after_s, called, history)
    try:
        candidates = _trigger_candidates(when, called, history, steps)
    except LookupError as error:
        return f"it should have been injected {when}, and {error}"
    if not candidates:
        return f'it should have been injected {when}, and no "{_awaited_action(when)}" triggered it'
    return _too_soon(when, candidates[0], called, history)


def _trigger_candidates(
    when: TriggerSpec, called: FaultCalled, history: History, steps: Sequence[Step]
) -> Sequence[Event]:
    """The events that may have triggered it: the nth since steady state and all later ones before
    the call, or only the one of these that the call names. Raises LookupError."""
    steady = phase_began(history, DISTURB)
    referenced = None if when.effect_of is None else referenced_step(when, steps)
    found = [
        event
        for event in history
        if event.action == _awaited_action(when)
        and (steady is None or event.index > steady.index)
        and event.index < called.index
        and (referenced is None or (isinstance(event, FaultEvent) and event.step == referenced))
        and (when.at_record is None or (isinstance(event, RecordsSent) and reaches(event, when)))
    ][when.nth - 1 :]
    index = called.trigger_index
    return found if index is None else [event for event in found if event.index == index]


def _too_soon(when: TriggerSpec, event: Event, called: FaultCalled, history: History) -> str:
    """A message if the call was earlier than the delay after the event; else empty. Where a fault
    moved the clocks, the moment of an event with the engine's stamp is not known."""
    if isinstance(event, FaultInEffect):
        moment_ns = event.moment_ns
    elif isinstance(event, RecordsSent):
        moment_ns = event.at_ns
    elif clock_moved(history):
        return ""
    else:
        moment_ns = EngineClock(history).moment_ns(event)
    after_s = (called.at_ns - moment_ns) / 1e9
    if after_s >= when.delay_s - (CLOCK_S if isinstance(event, FaultInEffect) else STAMP_NS / 1e9):
        return ""
    return f"it should have been injected {when}, and was called {after_s:.1f} s after that"


def _awaited_action(when: TriggerSpec) -> str:
    first, _ = when.between or ("", "")
    if when.at_record is not None:
        return Action.SENT
    return when.event or first or Action.FAULT_IN_EFFECT


def _too_early(after_s: float, called: FaultCalled, history: History) -> str:
    steady = phase_began(history, DISTURB)
    called_s = called.at_s - (0.0 if steady is None else steady.at_s)
    if called_s >= after_s - CLOCK_S:
        return ""
    message = f"it should have been injected {after_s:g} s after steady state"
    return f"{message}, and was called at {called_s:.1f} s"
