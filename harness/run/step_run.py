"""One step of a schedule on its way from trigger to heal."""

from __future__ import annotations

import random
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from streamquake.faults.fault import Fault, Target
from streamquake.faults.injection.injection import InjectionResult
from streamquake.faults.injection.intents import Intent
from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.trigger import Trigger
from streamquake.harness.run.baselines import BaselinesAhead
from streamquake.harness.run.effect_watch import EffectWatch


class StepState(StrEnum):
    WAITING = "waiting for its trigger"
    INJECTING = "being injected"
    ACTIVE = "in effect"
    HEALING = "being healed"
    OVER = "over"


@dataclass(frozen=True, kw_only=True)
class SkippedStep:
    """The step was not tried, and why."""

    reason: str


class StepRun:
    """What is known of one step while the schedule is played."""

    def __init__(
        self,
        number: int,
        step: Step,
        trigger: Trigger,
        rng: random.Random,
        baselines: BaselinesAhead,
    ) -> None:
        self.number = number
        self.step = step
        self.trigger = trigger
        self.rng = rng
        self.baselines = baselines
        self.fault: Fault = step.made()
        self.state = StepState.WAITING
        self.targets: tuple[Target, ...] = ()
        self.intent: Intent | None = None
        self.effect_delay: tuple[int, int] | None = None
        """Between which two moments the newest strike bit: called, and seen."""
        self.missed = False
        """Whether it is known that the newest strike came too late for its window."""
        self.watch: EffectWatch | None = None
        """Takes the evidence again, from the effect to the heal."""
        self.verified_ns: int | None = None
        """When the newest strike was verified last, as its watch had it at the heal."""
        self.tries = 0
        self.heal_due_ns: int | None = None
        self.work: Future[InjectionResult | SkippedStep] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(target.name for target in self.targets)

    @property
    def may_try_again(self) -> bool:
        return self.missed and self.tries < self.step.when.tries

    def heal_is_due(self, now_ns: int) -> bool:
        return self.heal_due_ns is not None and now_ns >= self.heal_due_ns

    def wait_again(self) -> None:
        """Back to the trigger, for its next occurrence."""
        self.trigger.again()
        self.state = StepState.WAITING
        self.targets, self.intent, self.effect_delay, self.heal_due_ns = (), None, None, None
        self.verified_ns = None
        self.missed = False

    def lateness(self) -> dict[str, Any]:
        """How long after the moment its trigger meant it was seen to bite."""
        if self.effect_delay is None or self.trigger.due_ns is None:
            return {}
        late_ms = (self.effect_delay[1] - self.trigger.due_ns) / 1e6
        return {"due_ns": self.trigger.due_ns, "lateness_ms": round(late_ms, 3)}

    def about(self) -> dict[str, Any]:
        return {
            "step": self.number,
            "fault": self.step.fault,
            "target": self.step.target,
            "nodes": list(self.names),
        }
