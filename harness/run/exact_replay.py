"""The schedule of a recorded run bound to what happened: the same nodes, at the same counts.

Every injection of the record becomes a step of its own. Its target names what it was called on. Its
trigger counts what the system did since steady state: checkpoints and batches, or else the records
of the load. Where the record has no such count, the moment stays as it is, which is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.faults.schedule.trigger import ACKNOWLEDGED, referenced_step
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.recorded_targets import bound_step
from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.harness.verdict.evidence.phases import DISTURB, phase_began
from streamquake.harness.verdict.evidence.trigger_evidence import trigger_event
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.fault_events import FaultCalled, FaultSkipped
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import RecordsSent

COUNTED = (
    Action.CHECKPOINT_TRIGGERED,
    Action.CHECKPOINT_COMPLETED,
    Action.OFFSET_WRITTEN,
    Action.SINK_WRITTEN,
    Action.COMMIT_WRITTEN,
)
"""The events whose count is a moment of the protocol."""


@dataclass(frozen=True, kw_only=True)
class BoundSchedule:
    """The steps of an exact replay, and a note on each that is not exactly bound."""

    steps: tuple[Step, ...]
    notes: tuple[str, ...]


def bound_schedule(experiment: Experiment, history: History) -> BoundSchedule:
    """The schedule of a run as it was injected."""
    binding = _Binding(experiment, history)
    for number, step in enumerate(experiment.faults):
        binding.bind(number, step)
    return BoundSchedule(steps=tuple(binding.steps), notes=tuple(binding.notes))


class _Binding:
    """The steps that are bound so far."""

    def __init__(self, experiment: Experiment, history: History) -> None:
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self._experiment = experiment
        self._history = history
        self._clock = EngineClock(history)
        self._steady = phase_began(history, DISTURB)
        self._first_of: dict[int, int] = {}
        """Step of the run -> the place of its first injection among the bound steps."""

    def bind(self, number: int, step: Step) -> None:
        """Add a step for each injection of a step of the run."""
        called = [e for e in self._history.of(FaultCalled) if e.step == number]
        if not called:
            self._note(number, step, f"is left out: {self._reason_of_skip(number)}")
            return
        self._first_of[number] = len(self.steps)
        for injection in called:
            is_last = injection is called[-1]
            bound = step.model_copy(
                update={"when": self._moment(number, step, injection, is_last=is_last)}
            )
            try:
                bound = bound_step(bound, injection, self._experiment.topology)
            except LookupError as error:
                self._note(number, step, f"keeps its target: {error}")
            self.steps.append(bound)

    def _moment(
        self, number: int, step: Step, called: FaultCalled, *, is_last: bool
    ) -> TriggerSpec:
        """The trigger of an injection by a count."""
        when = step.when
        if when.effect_of is not None:
            return self._after_effect(number, step, called)
        if when.at_record is not None:
            return self._at_seen_record(when, called)
        opened = trigger_event(when, called, self._history) if when.event or when.between else None
        if opened is not None and when.between is not None and is_last:
            return when.model_copy(update={"nth": self._count(opened), "tries": 1})
        if opened is not None and when.event is not None:
            return when.model_copy(update={"nth": self._count(opened)})
        return self._by_count(number, step, called, opened)

    def _at_seen_record(self, when: TriggerSpec, called: FaultCalled) -> TriggerSpec:
        """The record that was acknowledged at the trigger: later than the one that was awaited
        where that one was acknowledged before the steady state."""
        seen = trigger_event(when, called, self._history)
        last = seen.last if isinstance(seen, RecordsSent) else when.at_record
        return when.model_copy(update={"at_record": last})

    def _by_count(
        self, number: int, step: Step, called: FaultCalled, opened: Event | None
    ) -> TriggerSpec:
        """The last counted event before an injection, and the time since then; or the record."""
        before = opened or self._last_before(called, COUNTED)
        if before is not None:
            delay_s = max(0, called.at_ns - self._clock.moment_ns(before)) / 1e9
            nth, delay_s = self._count(before), round(delay_s, 3)
            return TriggerSpec(event=before.action, nth=nth, delay_s=delay_s)
        sent = [e for e in self._history.of(RecordsSent) if e.status == ACKNOWLEDGED]
        if earlier := [e for e in sent if e.at_ns <= called.at_ns]:
            return TriggerSpec(at_record=earlier[-1].last)
        self._note(number, step, "keeps its moment: the record has no count before it")
        return step.when

    def _after_effect(self, number: int, step: Step, called: FaultCalled) -> TriggerSpec:
        """The same step in effect, by its new number; a count where that was not injected."""
        awaited = self._first_of.get(referenced_step(step.when, self._experiment.faults[:number]))
        if awaited is None:
            return self._by_count(number, step, called, None)
        return step.when.model_copy(update={"effect_of": awaited + 1})

    def _last_before(self, called: FaultCalled, actions: Sequence[Action]) -> Event | None:
        """The newest of these events since steady state before an injection, by its moment."""
        found = [
            event
            for event in self._since_steady()
            if event.action in actions and event.index < called.index
        ]
        return max(found, key=self._clock.moment_ns, default=None)

    def _count(self, event: Event) -> int:
        """How many events of this kind there were since steady state, up to this one."""
        same = (e for e in self._since_steady() if e.action == event.action)
        return sum(each.index <= event.index for each in same)

    def _since_steady(self) -> Iterator[Event]:
        steady = -1 if self._steady is None else self._steady.index
        return (event for event in self._history if event.index > steady)

    def _reason_of_skip(self, number: int) -> str:
        skipped = (e.reason for e in self._history.of(FaultSkipped) if e.step == number)
        return next(skipped, "") or "the run did not inject it"

    def _note(self, number: int, step: Step, message: str) -> None:
        self.notes.append(f"step {number + 1}, {step.fault} on {step.target}, {message}")
