"""The disturbance: drives the steps of a schedule against the cluster.

Strikes and heals run in worker threads, so that the loop goes on watching for other triggers. A
step whose target is already disturbed in the same way is skipped and said so, not forced.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import StrEnum
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import Fault, Step, Target
from streamquake.faults.intents import Intent, IntentLog
from streamquake.faults.strike import Struck, strike, undo
from streamquake.faults.target import parse_target, resolve
from streamquake.faults.trigger import Trigger
from streamquake.harness.loop import Loop
from streamquake.reports.event import Action, Event, Kind


class State(StrEnum):
    WAITING = "waiting for its trigger"
    STRIKING = "being injected"
    ACTIVE = "in effect"
    HEALING = "being healed"
    OVER = "over"


class StepRun:
    """One step of the schedule on its way from trigger to heal."""

    def __init__(self, number: int, step: Step, trigger: Trigger, rng: random.Random) -> None:
        self.number = number
        self.step = step
        self.trigger = trigger
        self.rng = rng
        self.fault: Fault = step.made()
        self.state = State.WAITING
        self.targets: tuple[Target, ...] = ()
        self.intent: Intent | None = None
        self.heal_due_ns: int | None = None
        self.work: Future[Struck] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(target.name for target in self.targets)

    def heal_is_due(self, now_ns: int) -> bool:
        return self.heal_due_ns is not None and now_ns >= self.heal_due_ns

    def about(self) -> dict[str, Any]:
        return {
            "step": self.number,
            "fault": self.step.fault,
            "target": self.step.target,
            "nodes": list(self.names),
        }


class Disturbance:
    """All steps of one run."""

    def __init__(
        self, steps: Sequence[Step], *, cluster: Cluster, loop: Loop, intents: IntentLog,
        seed: int, effect_s: float, trigger_s: float,
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._loop = loop
        self._intents = intents
        self._effect_s = effect_s
        self._began_ns = loop.clock.now_ns()
        self._trigger_limit_ns = self._began_ns + int(trigger_s * 1e9)
        self._pool = ThreadPoolExecutor(max_workers=max(2, len(steps)), thread_name_prefix="fault")
        self.runs = [
            StepRun(
                n, step, Trigger(step.when, self._began_ns), random.Random(f"{seed}:faults:{n}")
            )
            for n, step in enumerate(steps)
        ]
        loop.listen(self._see)

    def pending(self) -> str | None:
        """Advance every step; why the schedule is not through yet, or None when it is.

        A step without `for_s` stays in effect until `heal_all`.
        """
        for run in self.runs:
            self._advance(run)
        for run in self.runs:
            stays = run.state == State.ACTIVE and run.heal_due_ns is None
            if run.state != State.OVER and not stays:
                return f"{run.step.fault} on {run.step.target} is {run.state}"
        return None

    def active(self) -> tuple[str, ...]:
        """The disturbances in effect now, for the progress display."""
        return tuple(
            f"{run.step.fault} on {', '.join(run.names)}"
            for run in self.runs
            if run.state in (State.ACTIVE, State.HEALING)
        )

    def holding(self) -> tuple[str, ...]:
        """The nodes whose processes a step of the schedule keeps down now."""
        held = (State.STRIKING, State.ACTIVE, State.HEALING)
        return tuple(
            name
            for run in self.runs
            if run.state in held and run.fault.touches == "process"
            for name in run.names
        )

    def heal_all(self) -> None:
        """Undo everything that is open, whatever state it is in; what failed is tried once more."""
        for run in self.runs:
            if run.work is not None:
                self._finish(run, run.work.result())
        for run in self.runs:
            if run.state == State.ACTIVE or (run.intent in self._intents.open()):
                self._begin_heal(run)
        for run in self.runs:
            if run.work is not None:
                self._finish(run, run.work.result())
        self._pool.shutdown()

    def _see(self, event: Event) -> None:
        for run in self.runs:
            if run.state == State.WAITING:
                run.trigger.see(event)

    def _advance(self, run: StepRun) -> None:
        now_ns = self._loop.clock.now_ns()
        if run.work is not None:
            if run.work.done():
                self._finish(run, run.work.result())
        elif run.state == State.WAITING:
            if run.trigger.is_due(now_ns):
                self._begin_strike(run)
            elif run.trigger.due_ns is None and now_ns >= self._trigger_limit_ns:
                self._skip(run, run.trigger.missing())
        elif run.state == State.ACTIVE and run.heal_is_due(now_ns):
            self._begin_heal(run)

    def _begin_strike(self, run: StepRun) -> None:
        try:
            run.targets = resolve(parse_target(run.step.target), self._cluster, run.rng)
        except LookupError as error:
            return self._skip(run, str(error))
        if taken := self._already_disturbed(run):
            return self._skip(run, f"{taken} is already disturbed in the same way")
        run.intent = self._intents.intend(
            step=run.number, fault=run.fault, target=run.step.target, names=run.names
        )
        trigger = {"trigger_index": run.trigger.event.index} if run.trigger.event else {}
        self._say(run, Action.FAULT_CALLED, Kind.INVOKE, params=dict(run.step.params), **trigger)
        run.state = State.STRIKING
        run.work = self._pool.submit(
            lambda: strike(run.fault, self._cluster, run.targets, limit_s=self._effect_s)
        )
        return None

    def _begin_heal(self, run: StepRun) -> None:
        assert run.intent is not None
        intent = run.intent
        self._say(run, Action.HEAL_CALLED, Kind.INVOKE)
        run.state = State.HEALING
        run.work = self._pool.submit(
            lambda: undo(intent, self._cluster, self._intents, limit_s=self._effect_s)
        )

    def _finish(self, run: StepRun, struck: Struck) -> None:
        run.work = None
        striking = run.state == State.STRIKING
        if struck.done:
            action = Action.FAULT_IN_EFFECT if striking else Action.FAULT_HEALED
            self._say(
                run, action, Kind.OK, called_ns=struck.called_ns, seen_ns=struck.seen_ns,
                evidence=dict(struck.evidence),
            )  # fmt: skip
        else:
            action = Action.FAULT_NOT_IN_EFFECT if striking else Action.FAULT_NOT_HEALED
            self._say(run, action, Kind.FAIL, reason=struck.reason)
        run.state = State.ACTIVE if striking else State.OVER
        if striking:
            run.heal_due_ns = self._heal_due_ns(run, struck)

    def _heal_due_ns(self, run: StepRun, struck: Struck) -> int | None:
        """When to heal: at once what did not bite (it may still be half laid)."""
        if not struck.done or struck.seen_ns is None:
            return self._loop.clock.now_ns()
        return None if run.step.for_s is None else struck.seen_ns + int(run.step.for_s * 1e9)

    def _already_disturbed(self, run: StepRun) -> str | None:
        taken = {
            name
            for other in self.runs
            if other.state in (State.STRIKING, State.ACTIVE, State.HEALING)
            and other.fault.touches == run.fault.touches
            for name in other.names
        }
        return next((name for name in run.names if name in taken), None)

    def _skip(self, run: StepRun, reason: str) -> None:
        run.state = State.OVER
        self._say(run, Action.FAULT_SKIPPED, Kind.INFO, reason=reason)

    def _say(self, run: StepRun, action: Action, kind: Kind, **value: Any) -> None:
        self._loop.say(action, kind=kind, process=f"fault-{run.number}", **run.about(), **value)
