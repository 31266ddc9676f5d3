"""The events of faults: called, in effect, verified again, healed, and their failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.event_field import EventField

UNVERIFIED_NS = 15 * 10**9
"""A fault counts as not verified if its last successful check is older than this at its heal. It
leaves room for two failed checks in a row."""


class FaultEvent(Event):
    """An event of one step of the schedule."""

    step = EventField[int]()
    """The step's place in the schedule, from zero."""
    fault = EventField[str]("")
    """The fault's name."""
    target = EventField[str]("")
    """The target, as written in the experiment."""
    nodes = EventField[Sequence[str] | None](None)
    """The nodes or pairs of nodes that were chosen; missing in old records."""


class FailedFaultEvent(FaultEvent):
    """An event that reports why a fault did not go as planned."""

    reason = EventField[str]("")
    """The observation instead of the planned one, or the reason."""


class FaultCalled(FaultEvent, action=Action.FAULT_CALLED, kinds=(Kind.INVOKE,)):
    """An injection began."""

    params = EventField[Mapping[str, Any] | None](None)
    """The fault's parameters, without secrets."""
    trigger_index = EventField[int | None](None)
    """The index of the event that fired the trigger; missing where no event did."""


class ObservedFaultEvent(FaultEvent):
    """An event of a fault whose state was observed on its targets."""

    seen_ns = EventField[int]()
    """The time of the observation, in nanoseconds of the run's clock."""
    evidence = EventField[Mapping[str, Any] | None](None)
    """Target -> what was observed on it; missing in old records."""

    @property
    def moment_ns(self) -> int:
        """The time of the observation, or of its recording in a record without that time, in
        nanoseconds of the run's clock."""
        seen_ns: int | None = self.value.get("seen_ns")
        return self.at_ns if seen_ns is None else seen_ns

    @property
    def observed_targets(self) -> frozenset[str]:
        """The targets of which something was observed. A value without fields, such as a text, is
        no observation: nothing of it can be compared."""
        return frozenset(
            target
            for target, observed in (self.evidence or {}).items()
            if isinstance(observed, Mapping) and observed
        )


class FaultInEffect(ObservedFaultEvent, action=Action.FAULT_IN_EFFECT, kinds=(Kind.OK,)):
    """The effect was observed on every target."""

    called_ns = EventField[int | None](None)
    """When the injection was called, in nanoseconds of the run's clock; missing in old records."""
    due_ns = EventField[int | None](None)
    """The time for which the trigger planned the effect, in nanoseconds of the run's clock."""
    lateness_ms = EventField[float | None](None)
    """The delay from the time that the trigger planned to the effect, in milliseconds."""

    @property
    def start_ns(self) -> int:
        """The time of the injection call, or of the observed effect in a record without that time,
        in nanoseconds of the run's clock."""
        return self.seen_ns if self.called_ns is None else self.called_ns


class FaultNotInEffect(FailedFaultEvent, action=Action.FAULT_NOT_IN_EFFECT, kinds=(Kind.FAIL,)):
    """The effect was not observed within its limit."""


class FaultStillInEffect(ObservedFaultEvent, action=Action.FAULT_STILL_IN_EFFECT):
    """The effect was verified again on every target, before the heal."""


class FaultEndedEarly(
    FailedFaultEvent, ObservedFaultEvent, action=Action.FAULT_ENDED_EARLY, kinds=(Kind.FAIL,)
):
    """The effect was no longer observed on some target before the heal was called."""

    last_seen_ns = EventField[int | None](None)
    """When the effect was verified last, in nanoseconds of the run's clock."""


class FaultNotVerified(
    FailedFaultEvent, ObservedFaultEvent, action=Action.FAULT_NOT_VERIFIED, kinds=(Kind.FAIL,)
):
    """A lasting fault was healed, and the last verification of its effect was too long before the
    heal."""

    last_seen_ns = EventField[int | None](None)
    """When the effect was verified last, in nanoseconds of the run's clock."""


class HealCalled(FaultEvent, action=Action.HEAL_CALLED, kinds=(Kind.INVOKE,)):
    """The removal of a fault began."""

    last_seen_ns = EventField[int | None](None)
    """When the effect was verified last, in nanoseconds of the run's clock; missing in old
    records."""
    in_place_ns = EventField[int | None](None)
    """When a check last found the fault in effect, or in place on an idle system, or another step
    kept a target down; in nanoseconds of the run's clock, missing in old records."""


class FaultHealed(ObservedFaultEvent, action=Action.FAULT_HEALED, kinds=(Kind.OK,)):
    """The removal was observed on every target."""

    called_ns = EventField[int | None](None)
    """When the heal was called, in nanoseconds of the run's clock; missing in old records."""
    missing_targets = EventField[Sequence[str]]((), name="gone")
    """The targets that no longer exist."""


class FaultNotHealed(FailedFaultEvent, action=Action.FAULT_NOT_HEALED, kinds=(Kind.FAIL,)):
    """The removal was not observed within its limit."""


class FaultSkipped(FailedFaultEvent, action=Action.FAULT_SKIPPED):
    """The trigger never fired, or another fault disturbed the target."""


class FaultMissedWindow(FailedFaultEvent, action=Action.FAULT_MISSED_WINDOW, kinds=(Kind.FAIL,)):
    """The fault was planned between two events and took effect only after the second one."""

    seen_ns = EventField[int | None](None)
    """When the effect was observed, in nanoseconds of the run's clock."""
