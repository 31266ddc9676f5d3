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
from streamquake.harness.run.baselines import BaselineCache
from streamquake.harness.run.effect_watch import EffectWatch


class StepState(StrEnum):
    """The state of a step; its value completes "FAULT on TARGET is ..."."""

    WAITING = "waiting for its trigger"
    INJECTING = "being injected"
    ACTIVE = "in effect"
    HEALING = "being healed"
    OVER = "over"


@dataclass(frozen=True, kw_only=True)
class SkippedStep:
    """The result of a step that was not injected, with the reason."""

    reason: str


class StepRun:
    """The state of one step while the schedule runs."""

    def __init__(
        self,
        number: int,
        step: Step,
        trigger: Trigger,
        rng: random.Random,
        baselines: BaselineCache,
    ) -> None:
        self.number = number
        self.step = step
        self.trigger = trigger
        self.rng = rng
        self.baselines = baselines
        self.fault: Fault = step.build_fault()
        self.state = StepState.WAITING
        self.targets: tuple[Target, ...] = ()
        self.intent: Intent | None = None
        self.effect_times_ns: tuple[int, int] | None = None
        """The moments of the newest injection: it was called, its effect was observed."""
        self.has_missed_window = False
        """Whether the newest injection is known to have missed its window."""
        self.watch: EffectWatch | None = None
        """Verifies the effect again and again, from its start to the heal."""
        self.verified_ns: int | None = None
        """When the newest injection was verified last before its heal."""
        self.in_place_ns: int | None = None
        """When a check found it in effect or in place last before its heal."""
        self.tries = 0
        self.last_names: tuple[str, ...] = ()
        """The targets of the try before. A node that was ended may have no task since."""
        self.heal_due_ns: int | None = None
        self.work: Future[InjectionResult | SkippedStep] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(target.name for target in self.targets)

    @property
    def may_retry(self) -> bool:
        return self.has_missed_window and self.tries < self.step.when.tries

    def heal_is_due(self, now_ns: int) -> bool:
        return self.heal_due_ns is not None and now_ns >= self.heal_due_ns

    def reset_for_retry(self) -> None:
        """Wait for the next occurrence of the trigger."""
        self.trigger.wait_again()
        self.state = StepState.WAITING
        self.last_names = self.names
        self.targets, self.intent, self.effect_times_ns, self.heal_due_ns = (), None, None, None
        self.verified_ns = self.in_place_ns = None
        self.has_missed_window = False

    def last_checks(self) -> dict[str, Any]:
        """The moments in ns of the last checks before the heal; empty where there were none."""
        if self.verified_ns is None:
            return {}
        return {"last_seen_ns": self.verified_ns, "in_place_ns": self.in_place_ns}

    def lateness(self) -> dict[str, Any]:
        """The moment of the trigger in ns, and by how many ms the effect was observed after it;
        empty if the trigger has no known moment."""
        if self.effect_times_ns is None or self.trigger.due_ns is None:
            return {}
        late_ms = (self.effect_times_ns[1] - self.trigger.due_ns) / 1e6
        return {"due_ns": self.trigger.due_ns, "lateness_ms": round(late_ms, 3)}

    def identity(self) -> dict[str, Any]:
        """The fields that name this step in its events."""
        return {
            "step": self.number,
            "fault": self.step.fault,
            "target": self.step.target,
            "nodes": list(self.names),
        }
