"""Triggers: when a fault is injected, counted from steady state. One class for each kind."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.runtime.clock import Clock
from streamquake.faults.schedule.event_times import closes_window, earliest_moments, moment_ns
from streamquake.faults.schedule.metric_series import source_of
from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.fault_events import FaultInEffect, FaultNotInEffect, FaultSkipped
from streamquake.reports.record.run_events import RecordsSent

ACKNOWLEDGED = "acknowledged"
"""The status of records that have certainly arrived."""
STALE_NS = 10 * 10**9
"""A place without a sample for so many nanoseconds no longer counts: its task or topic was
removed."""


class Trigger:
    """The trigger of one step; `due_ns` is the moment to inject, once it is known."""

    def __init__(self, when: TriggerSpec, clock: Clock) -> None:
        self.when = when
        self.due_ns: int | None = None
        self.event: Event | None = None
        """The event that triggered it, if an event did."""
        self.impossible_reason = ""
        """Why it can no longer be triggered; empty while it can be."""
        self._clock = clock
        self._fired = False

    def observe(self, event: Event) -> None:
        """Take an event of the history into account."""

    def add_sample(self, series: str, place: str, value: float, at_ns: int) -> None:
        """Take a sample into account."""

    def fire(self) -> None:
        """The injection begins now."""
        self._fired = True

    def wait_again(self) -> None:
        """Wait for the next occurrence."""
        self._fired, self.due_ns, self.event = False, None, None

    def is_due(self, now_ns: int) -> bool:
        return self.due_ns is not None and now_ns >= self.due_ns

    def missed_reason(self, called_ns: int, seen_ns: int) -> str:
        """Why an effect between these moments (run's clock, nanoseconds) was too late; empty when
        it was in time."""
        return ""

    def unfired_reason(self) -> str:
        """Why the trigger did not fire, as a message for the user."""
        raise NotImplementedError

    def _set_due(self, moment: int, event: Event | None = None) -> None:
        self.event = event
        self.due_ns = moment + int(self.when.delay_s * 1e9)


class AfterSeconds(Trigger):
    """A number of seconds after steady state."""

    def __init__(self, when: TriggerSpec, clock: Clock, steady_ns: int) -> None:
        super().__init__(when, clock)
        self.due_ns = steady_ns + int((when.after_s or 0) * 1e9)

    def unfired_reason(self) -> str:
        return f"the moment {self.when} was not reached"


class AtEvent(Trigger):
    """At the nth event with its name."""

    def __init__(self, when: TriggerSpec, clock: Clock) -> None:
        super().__init__(when, clock)
        self._occurrences = 0

    def observe(self, event: Event) -> None:
        """Count an event; the nth of the awaited kind sets the moment."""
        if self.due_ns is None and event.action == self.when.event:
            self._occurrences += 1
            if self._occurrences == self.when.nth:
                self._set_due(moment_ns(event, self._clock), event)

    def unfired_reason(self) -> str:
        return (
            f'"{self.when.event}" was observed {self._occurrences} of {self.when.nth} times '
            "since steady state"
        )


class Between(Trigger):
    """After the nth first event, before the second one that belongs to it.

    When a window closes before the injection begins, the trigger waits for the next window.
    """

    def __init__(self, when: TriggerSpec, clock: Clock) -> None:
        super().__init__(when, clock)
        self._first, self._second = when.between or ("", "")
        self._occurrences = 0
        self._missed_windows = 0
        self._closed: tuple[int, str] | None = None

    def observe(self, event: Event) -> None:
        if self.event is None:
            self._occurrences += event.action == self._first
            if event.action == self._first and self._occurrences >= self.when.nth:
                self._set_due(moment_ns(event, self._clock), event)
            return
        for action, moment in earliest_moments(event, self.event, self._clock):
            if closes_window(self.event, self._second, action, event):
                self._closed = min(self._closed or (moment, action), (moment, action))
        if self._closed is not None and not self._fired:
            self._missed_windows += 1
            self.wait_again()

    def wait_again(self) -> None:
        super().wait_again()
        self._closed = None

    def missed_reason(self, called_ns: int, seen_ns: int) -> str:
        if self._closed is None:
            return ""
        moment_ns, action = self._closed
        # A checkpoint that fails after the call fails because of the fault.
        if moment_ns > (called_ns if action == Action.CHECKPOINT_FAILED else seen_ns):
            return ""
        late_ms = (seen_ns - moment_ns) / 1e6
        return (
            f'the window between "{self._first}" and "{self._second}" was missed: '
            f'"{action}" happened {late_ms:.1f} ms before the effect of the fault was verified'
        )

    def unfired_reason(self) -> str:
        message = f'"{self._first}" was observed {self._occurrences} times since steady state'
        if self._occurrences < self.when.nth:
            return f"{message}, number {self.when.nth} was awaited"
        if not self._missed_windows:
            return message
        return (
            f'{message}; {self._missed_windows} times "{self._second}" had followed before the '
            "fault could be injected: the step is shorter than the harness can observe"
        )


class AtRecord(Trigger):
    """When a record and all earlier ones are acknowledged."""

    def __init__(self, when: TriggerSpec, clock: Clock) -> None:
        super().__init__(when, clock)
        self._last: int | None = None

    def observe(self, event: Event) -> None:
        if self.due_ns is None and isinstance(event, RecordsSent) and reaches(event, self.when):
            self._set_due(event.at_ns, event)
        if isinstance(event, RecordsSent) and event.status == ACKNOWLEDGED:
            self._last = event.last

    def unfired_reason(self) -> str:
        if self._last is None:
            return f"{self.when}: no record was acknowledged since steady state"
        return f"{self.when}: the last acknowledged record was {self._last}"


def reaches(event: RecordsSent, when: TriggerSpec) -> bool:
    """Whether an event reports the acknowledgement of the record that a trigger waits for, or of a
    later one."""
    wanted = when.at_record
    return wanted is not None and event.status == ACKNOWLEDGED and event.last >= wanted


class AtThreshold(Trigger):
    """When a metric has been beyond its threshold for long enough."""

    def __init__(self, when: TriggerSpec, clock: Clock) -> None:
        super().__init__(when, clock)
        self._series, self._factor = source_of(when.metric or "")
        self._places: dict[str, tuple[int, float]] = {}
        self._since_ns: int | None = None
        self._last: float | None = None

    def add_sample(self, series: str, place: str, value: float, at_ns: int) -> None:
        if series != self._series or self.due_ns is not None:
            return
        self._places[place] = (at_ns, value * self._factor)
        recent = [v for seen_ns, v in self._places.values() if at_ns - seen_ns < STALE_NS]
        self._last = max(recent)
        if not self._is_beyond(self._last):
            self._since_ns = None
            return
        if self._since_ns is None:
            self._since_ns = at_ns
        if at_ns - self._since_ns >= self.when.for_s * 1e9:
            self._set_due(at_ns)

    def unfired_reason(self) -> str:
        if self._last is None:
            return f'no sample of "{self.when.metric}" was observed since steady state'
        return f"{self.when}: this never was the case; the last value was {self._last:g}"

    def _is_beyond(self, value: float) -> bool:
        if self.when.above is not None:
            return value > self.when.above
        return value < (self.when.below or 0.0)


class AtEffect(Trigger):
    """When another step of the schedule is in effect."""

    def __init__(self, when: TriggerSpec, clock: Clock, step: int) -> None:
        super().__init__(when, clock)
        self._step = step

    def observe(self, event: Event) -> None:
        if self.due_ns is not None:
            return
        match event:
            case FaultInEffect(step=self._step):
                self._set_due(event.seen_ns, event)
            case FaultSkipped(step=self._step) | FaultNotInEffect(step=self._step):
                self.impossible_reason = f"{self.when}: it never was in effect ({event.reason})"

    def unfired_reason(self) -> str:
        return f"{self.when}: it was not in effect yet"


def trigger_of(
    when: TriggerSpec, clock: Clock, *, steady_ns: int, steps: Sequence[Step] = ()
) -> Trigger:
    """The trigger of a step; `steps` are the steps of the schedule to which `effect_of` may
    refer."""
    match when.kind:
        case "after_s":
            return AfterSeconds(when, clock, steady_ns)
        case "event":
            return AtEvent(when, clock)
        case "between":
            return Between(when, clock)
        case "at_record":
            return AtRecord(when, clock)
        case "metric":
            return AtThreshold(when, clock)
        case _:
            return AtEffect(when, clock, referenced_step(when, steps))


def referenced_step(when: TriggerSpec, steps: Sequence[Step]) -> int:
    """The position in the schedule, from 0, of the step that `effect_of` names. Raises
    LookupError."""
    if isinstance(when.effect_of, int):
        if when.effect_of <= len(steps):
            return when.effect_of - 1
        raise LookupError(f"there is no step {when.effect_of} before this one")
    found = [number for number, step in enumerate(steps) if step.fault == when.effect_of]
    if len(found) == 1:
        return found[0]
    if found:
        numbers = " and ".join(str(number + 1) for number in found)
        raise LookupError(f'"{when.effect_of}" is the fault of steps {numbers}; give the number')
    names = ", ".join(dict.fromkeys(step.fault for step in steps)) or "none"
    raise LookupError(f'no step before this one is a "{when.effect_of}"; there are: {names}')
