"""The injections of one record: when each took effect, how long it acted, and what is not proven of
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamquake.faults.fault import Fault, faults
from streamquake.faults.schedule.step import Step
from streamquake.harness.coverage.phase_window import Onset
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.evidence.last_verification import not_verified_until_heal
from streamquake.harness.verdict.evidence.step_attempts import (
    StepAttempt,
    first_heal_call,
    last_attempt,
)
from streamquake.harness.verdict.evidence.step_problems import (
    ENDED_EARLY,
    HEALED_EARLY,
    NOT_HEALED,
    NOT_IN_WINDOW,
    NOT_VERIFIED_AGAIN,
    idle_reason,
    step_problems,
)
from streamquake.reports.record.fault_events import (
    FaultCalled,
    FaultEndedEarly,
    FaultInEffect,
    FaultMissedWindow,
    FaultNotVerified,
    FaultStillInEffect,
)
from streamquake.reports.record.fault_windows import FaultWindow, fault_windows
from streamquake.reports.record.history import History

AFTER_EFFECT = {ENDED_EARLY, HEALED_EARLY, NOT_HEALED, NOT_IN_WINDOW, NOT_VERIFIED_AGAIN}
"""Problems that leave it proven that the fault took effect, and when."""


@dataclass(frozen=True, kw_only=True)
class Injection:
    """The last injection of one step."""

    number: int
    """The step's place in the schedule, from zero."""
    step: Step
    effect: FaultInEffect | None
    """None where no effect was verified."""
    onset: Onset
    problem: str = ""
    """Why its effect is not proven; empty where it is."""
    met_window: bool = False
    """Whether it was planned between two events, and nothing in the record contradicts that it took
    effect between them."""
    acted_until_ns: int = 0
    """Until when it is known to have acted; its onset for a fault that does not last."""
    together_with: tuple[str, ...] = ()
    """The other faults that acted at the same time."""

    @property
    def fault(self) -> type[Fault] | None:
        """None for a fault that this version does not know."""
        return faults.get(self.step.fault)


def injections_of(experiment: Experiment, history: History) -> tuple[Injection, ...]:
    """The last injection of every step that was injected, in the order of the schedule."""
    read = (_read(number, experiment, history) for number in range(len(experiment.faults)))
    windows = fault_windows(history)
    return tuple(
        _beside(injection, [window for window in windows if window.step != injection.number])
        for injection in read
        if injection is not None
    )


def _read(number: int, experiment: Experiment, history: History) -> Injection | None:
    attempt, step = last_attempt(history, number), experiment.faults[number]
    called, effect = attempt.get(FaultCalled), attempt.get(FaultInEffect)
    first = called or effect
    if first is None:
        return None
    called_ns = first.at_ns if effect is None else effect.start_ns
    seen_ns = first.at_ns if effect is None else effect.moment_ns
    idle = idle_reason(number, attempt, history) if effect is not None else ""
    problems = dict(step_problems(attempt, number, experiment, history, idle))
    against = [f"{what}: {why}" for what, why in problems.items() if what not in AFTER_EFFECT]
    injection = Injection(
        number=number,
        step=step,
        effect=effect,
        onset=Onset(called_ns=called_ns, seen_ns=max(called_ns, seen_ns)),
        problem=next(iter(against), ""),
        met_window=step.when.between is not None
        and NOT_IN_WINDOW not in problems
        and FaultMissedWindow not in attempt,
    )
    if effect is None:
        return injection
    until_ns = _acted_until_ns(injection, effect, attempt, history)
    return replace(injection, acted_until_ns=until_ns)


def _acted_until_ns(
    injection: Injection, effect: FaultInEffect, attempt: StepAttempt, history: History
) -> int:
    """Until its heal was called; until its last verification where it ended before that, or was not
    verified again. A process that was ended was hit once, and is only absent afterwards."""
    fault = injection.fault
    if fault is None or not fault.lasts or fault.ends_process or fault.ends_sandbox:
        return injection.onset.seen_ns
    if (early := attempt.get(FaultEndedEarly)) is not None:
        return effect.moment_ns if early.last_seen_ns is None else early.last_seen_ns
    healed = first_heal_call(effect, history)
    unverified = not_verified_until_heal(injection.step, attempt, history)
    if healed is None or unverified or FaultNotVerified in attempt:
        return (attempt.get(FaultStillInEffect) or effect).moment_ns
    return healed.at_ns


def _beside(injection: Injection, others: Sequence[FaultWindow]) -> Injection:
    """The injection with the faults that acted at the same time. Of two that took effect at once it
    is not known which one met the phase, and which one found it ended by the other."""
    onset = injection.onset
    at_once = [other for other in others if onset.overlaps(_onset_of(other))]
    together = [
        other.fault
        for other in others
        if other.called_s * 1e9 <= onset.seen_ns
        and (other.acted_until_s is None or onset.called_ns <= other.acted_until_s * 1e9)
    ]
    problem = injection.problem
    if at_once and not problem:
        problem = f"{at_once[0].fault} took effect at the same time"
    return replace(injection, problem=problem, together_with=tuple(dict.fromkeys(together)))


def _onset_of(window: FaultWindow) -> Onset:
    seen_s = window.called_s if window.in_effect_s is None else window.in_effect_s
    return Onset(called_ns=round(window.called_s * 1e9), seen_ns=round(seen_s * 1e9))
