"""The events of faults: called, in effect, verified again, healed, and what failed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.event_field import EventField


class FaultEvent(Event):
    """An event of one step of the schedule."""

    step = EventField[int]()
    """The step's place in the schedule, from zero."""
    fault = EventField[str]("")
    """The fault's name."""
    target = EventField[str]("")
    """The target, as it stands in the experiment."""
    nodes = EventField[Sequence[str] | None](None)
    """The nodes or pairs of nodes that were chosen; missing in old records."""


class FailedFaultEvent(FaultEvent):
    """An event that says what of a fault was not as planned."""

    reason = EventField[str]("")
    """What was seen instead, or why."""


class FaultCalled(FaultEvent, action=Action.FAULT_CALLED):
    """An injection was begun."""

    params = EventField[Mapping[str, Any] | None](None)
    """The fault's parameters, without secrets."""
    trigger_index = EventField[int | None](None)
    """The index of the event that set off the trigger; missing where no event did."""


class SeenFaultEvent(FaultEvent):
    """An event of a fault whose state was seen on its targets."""

    seen_ns = EventField[int]()
    """When it was seen, in nanoseconds of the run's clock."""
    evidence = EventField[Mapping[str, Any] | None](None)
    """Target -> what was seen there; missing in old records."""

    @property
    def moment_ns(self) -> int:
        """When it was seen, or, in a record that does not hold that, when it was recorded, in
        nanoseconds of the run's clock."""
        seen_ns: int | None = self.value.get("seen_ns")
        return self.at_ns if seen_ns is None else seen_ns


class FaultInEffect(SeenFaultEvent, action=Action.FAULT_IN_EFFECT):
    """The effect was seen on every target."""

    called_ns = EventField[int | None](None)
    """When the injection was called, in nanoseconds of the run's clock; missing in old records."""
    due_ns = EventField[int | None](None)
    """The moment that the trigger meant, in nanoseconds of the run's clock."""
    lateness_ms = EventField[float | None](None)
    """From the moment that the trigger meant to the effect, in milliseconds."""

    @property
    def start_ns(self) -> int:
        """When the injection was called, or, in a record that does not hold that, when its effect
        was seen, in nanoseconds of the run's clock."""
        return self.seen_ns if self.called_ns is None else self.called_ns


class FaultNotInEffect(FailedFaultEvent, action=Action.FAULT_NOT_IN_EFFECT):
    """The effect was not seen within its limit."""


class FaultStillInEffect(SeenFaultEvent, action=Action.FAULT_STILL_IN_EFFECT):
    """The effect was verified again on every target, before the heal."""


class FaultEndedEarly(FailedFaultEvent, SeenFaultEvent, action=Action.FAULT_ENDED_EARLY):
    """The effect was no longer seen on some target before the heal was called."""

    last_seen_ns = EventField[int | None](None)
    """When the effect was verified last, in nanoseconds of the run's clock."""


class FaultNotVerified(FailedFaultEvent, SeenFaultEvent, action=Action.FAULT_NOT_VERIFIED):
    """A fault that lasts was healed, and its effect had not been verified for long before."""

    last_seen_ns = EventField[int | None](None)
    """When the effect was verified last, in nanoseconds of the run's clock."""


class HealCalled(FaultEvent, action=Action.HEAL_CALLED):
    """The removal of a fault was begun."""

    last_seen_ns = EventField[int | None](None)
    """When the effect was verified last, in nanoseconds of the run's clock; missing in old
    records."""


class FaultHealed(SeenFaultEvent, action=Action.FAULT_HEALED):
    """The removal was seen on every target."""

    called_ns = EventField[int | None](None)
    """When the heal was called, in nanoseconds of the run's clock; missing in old records."""
    gone = EventField[Sequence[str]](())
    """The targets that no longer exist."""


class FaultNotHealed(FailedFaultEvent, action=Action.FAULT_NOT_HEALED):
    """The removal was not seen within its limit."""


class FaultSkipped(FailedFaultEvent, action=Action.FAULT_SKIPPED):
    """The trigger was never set off, or the target was disturbed by another fault."""


class FaultMissedWindow(FailedFaultEvent, action=Action.FAULT_MISSED_WINDOW):
    """The fault took effect only after the second of the two events between which it was meant."""

    seen_ns = EventField[int | None](None)
    """When the effect was seen, in nanoseconds of the run's clock."""
