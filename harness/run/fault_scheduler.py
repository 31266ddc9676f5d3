"""The disturbance: drives the steps of a schedule against the cluster.

Strikes and heals run in worker threads, so that the loop goes on watching for other triggers. A
step whose target is already disturbed in the same way is skipped and said so, not forced.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.faults.injection.injection import Struck, strike, undo
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.injection.verification import FurtherEvidence, look_again
from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.target import parse_target, resolve
from streamquake.faults.schedule.trigger import trigger_of
from streamquake.harness.run.baselines import BaselinesAhead
from streamquake.harness.run.effect_watch import EffectWatch
from streamquake.harness.run.event_loop import Loop, Sample
from streamquake.harness.run.step_run import Skipped, State, StepRun
from streamquake.reports.record.event import Action, Event, Kind

CHANGES = frozenset(
    {
        Action.FAULT_CALLED, Action.FAULT_IN_EFFECT, Action.HEAL_CALLED, Action.FAULT_HEALED,
        Action.CONTAINER_DIED, Action.CONTAINER_STARTED, Action.NODE_REVIVED,
    }
)  # fmt: skip
"""After these the cluster is not what it was when baselines were measured."""
AHEAD_NS = 6 * 10**9
"""How long before a known moment baselines begin to be measured."""


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
        self._claiming = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=max(2, len(steps)), thread_name_prefix="fault")
        self._looking = ThreadPoolExecutor(
            max_workers=max(2, len(steps)), thread_name_prefix="look"
        )
        self._measuring = ThreadPoolExecutor(max_workers=2, thread_name_prefix="baseline")
        self.runs = [self._run(number, steps, seed) for number in range(len(steps))]
        loop.listen(self._see)
        loop.sample(self._sampled)

    def _run(self, number: int, steps: Sequence[Step], seed: int) -> StepRun:
        step, clock = steps[number], self._loop.clock
        choice = parse_target(step.target)
        return StepRun(
            number, step,
            trigger_of(step.when, clock, steady_ns=self._began_ns, steps=steps[:number]),
            random.Random(f"{seed}:faults:{number}"),
            BaselinesAhead(step.made(), choice, self._cluster, self._measuring),
        )  # fmt: skip

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
        return self._last_looks()

    def _last_looks(self) -> str | None:
        """Look once more at what stays until `heal_all`, which itself waits for no look."""
        now_ns = self._loop.clock.now_ns()
        # Each is asked: the looks begin together.
        through = [
            (run, run.watch.is_through(now_ns)) for run in self.runs if run.watch is not None
        ]
        named = (f"{run.step.fault} on {run.step.target}" for run, done in through if not done)
        return next((f"{name} is verified once more" for name in named), None)

    def active(self) -> tuple[str, ...]:
        """The disturbances in effect now, for the progress display."""
        return tuple(
            f"{run.step.fault} on {', '.join(run.names)}"
            for run in self.runs
            if run.state in (State.ACTIVE, State.HEALING)
        )

    def holding(self) -> tuple[str, ...]:
        """The nodes whose processes a step of the schedule keeps down now."""
        return tuple(name for run in self._holding() for name in run.names)

    def _holding(self) -> list[StepRun]:
        held = (State.STRIKING, State.ACTIVE, State.HEALING)
        return [run for run in self.runs if run.state in held and run.fault.touches == "process"]

    def _kept_down(self, but: StepRun) -> set[str]:
        """The nodes that other steps keep down now."""
        return {name for run in self._holding() if run is not but for name in run.names}

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
        self._looking.shutdown(wait=False, cancel_futures=True)
        self._measuring.shutdown(wait=False, cancel_futures=True)

    def _see(self, event: Event) -> None:
        for run in self.runs:
            run.trigger.see(event)
            if event.action in CHANGES:
                run.baselines.forget()
            self._judge_window(run)

    def _sampled(self, sample: Sample) -> None:
        for run in self.runs:
            if run.state == State.WAITING:
                run.trigger.measure(sample.series, sample.where, sample.value, sample.at_ns)

    def _judge_window(self, run: StepRun) -> None:
        """Say once that a strike came too late, as soon as it is known."""
        if run.bite is None or run.missed:
            return
        called_ns, seen_ns = run.bite
        if reason := run.trigger.missed(called_ns, seen_ns):
            run.missed = True
            self._say(run, Action.FAULT_MISSED_WINDOW, Kind.FAIL, seen_ns=seen_ns, reason=reason)

    def _advance(self, run: StepRun) -> None:
        now_ns = self._loop.clock.now_ns()
        if run.work is not None:
            if run.work.done():
                self._finish(run, run.work.result())
        elif run.state == State.WAITING:
            self._await_trigger(run, now_ns)
        elif run.state == State.ACTIVE and (run.may_try_again or run.heal_is_due(now_ns)):
            self._begin_heal(run)
        elif run.watch is not None and (found := run.watch.advance(now_ns)) is not None:
            self._looked(run, run.watch, found)

    def _await_trigger(self, run: StepRun, now_ns: int) -> None:
        due_ns = run.trigger.due_ns
        if run.trigger.is_due(now_ns):
            self._begin_strike(run)
        elif run.trigger.hopeless:
            self._skip(run, run.trigger.hopeless)
        elif due_ns is None and now_ns >= self._trigger_limit_ns:
            self._skip(run, run.trigger.missing())
        elif due_ns is None or due_ns - now_ns < AHEAD_NS:
            run.baselines.refresh()

    def _begin_strike(self, run: StepRun) -> None:
        run.trigger.fire()
        run.tries += 1
        run.state = State.STRIKING
        self._begin(run, lambda: self._strike(run))

    def _strike(self, run: StepRun) -> Struck | Skipped:
        """Choose the targets, write the intent, strike; in a thread of its own."""
        try:
            if reason := self._claim(run):
                return Skipped(reason=reason)
            event = run.trigger.event
            why = {} if event is None else {"trigger_index": event.index}
            params = dict(run.step.params)
            self._say(run, Action.FAULT_CALLED, Kind.INVOKE, params=params, **why)
            run.intent = self._intents.intend(
                step=run.number, fault=run.fault, target=run.step.target, names=run.names,
                baselines=run.baselines.of(run.targets),
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - nothing was tried yet: the step is said, the run goes on
            return Skipped(reason=f"{type(error).__name__}: {error}")
        return strike(run.intent, self._cluster, run.targets, limit_s=self._effect_s)

    def _claim(self, run: StepRun) -> str:
        """Take the targets as they are now; why they cannot be had, or nothing."""
        try:
            targets = resolve(parse_target(run.step.target), self._cluster, run.rng)
        except LookupError as error:
            return str(error)
        with self._claiming:
            if taken := self._disturbed(run) & {target.name for target in targets}:
                return f"{min(taken)} is already disturbed in the same way"
            run.targets = targets
        return ""

    def _disturbed(self, run: StepRun) -> set[str]:
        """What other steps disturb now in the way that this one would."""
        return {
            name
            for other in self.runs
            if other is not run
            and other.state in (State.STRIKING, State.ACTIVE, State.HEALING)
            and other.fault.touches == run.fault.touches
            for name in other.names
        }

    def _begin_heal(self, run: StepRun) -> None:
        if (intent := run.intent) is None:  # nothing was tried
            run.state = State.OVER
            return
        if run.watch is not None:
            self._end_watch(run, run.watch)
        verified = {} if run.verified_ns is None else {"last_seen_ns": run.verified_ns}
        self._say(run, Action.HEAL_CALLED, Kind.INVOKE, **verified)
        run.state = State.HEALING
        self._begin(run, lambda: undo(intent, self._cluster, self._intents, limit_s=self._effect_s))

    def _end_watch(self, run: StepRun, watch: EffectWatch) -> None:
        """Take what the last look found; record where the effect was not verified for long."""
        if (found := watch.finished()) is not None:
            self._looked(run, watch, found)
        now_ns = self._loop.clock.now_ns()
        if unverified_ns := watch.unverified_ns(now_ns):
            self._say(
                run, Action.FAULT_NOT_VERIFIED, Kind.FAIL, last_seen_ns=watch.last_seen_ns,
                seen_ns=now_ns, reason=(
                    f"no look found it in effect or in place in the {unverified_ns / 1e9:.1f} s "
                    "before its heal"
                ),
            )  # fmt: skip
        run.watch, run.verified_ns = None, watch.last_seen_ns

    def _begin(self, run: StepRun, work: Callable[[], Struck | Skipped]) -> None:
        run.work = self._pool.submit(work)
        run.work.add_done_callback(lambda _: self._loop.wake())

    def _finish(self, run: StepRun, came: Struck | Skipped) -> None:
        run.work = None
        if isinstance(came, Skipped):
            self._skip(run, came.reason)
        elif run.state == State.STRIKING:
            self._struck(run, came)
        else:
            self._healed(run, came)

    def _struck(self, run: StepRun, struck: Struck) -> None:
        run.state = State.ACTIVE
        if not struck.done or struck.seen_ns is None:
            self._say(run, Action.FAULT_NOT_IN_EFFECT, Kind.FAIL, reason=struck.reason)
            run.heal_due_ns = self._loop.clock.now_ns()  # at once: it may be half laid
            return
        run.bite = struck.called_ns, struck.seen_ns
        self._say(
            run, Action.FAULT_IN_EFFECT, Kind.OK, called_ns=struck.called_ns,
            seen_ns=struck.seen_ns, evidence=dict(struck.evidence), **run.lateness(),
        )  # fmt: skip
        if run.step.for_s is not None:
            run.heal_due_ns = struck.seen_ns + int(run.step.for_s * 1e9)
        self._judge_window(run)
        if run.fault.lasts and (intent := run.intent) is not None:
            run.watch = EffectWatch(
                lambda: self._look_again(run, intent), self._looking, self._loop.wake,
                seen_ns=struck.seen_ns, heal_due_ns=run.heal_due_ns,
            )  # fmt: skip

    def _look_again(self, run: StepRun, intent: Intent) -> FurtherEvidence:
        """One look; it proves no end where another step keeps the node down, as the schedule has
        it."""
        down = self._kept_down(run)
        found = look_again(intent, self._cluster)
        down |= self._kept_down(run)
        told = {n: each for n, each in found.evidence.items() if each.in_effect or n not in down}
        return replace(found, evidence=told, kept_down=not down.isdisjoint(run.names))

    def _looked(self, run: StepRun, watch: EffectWatch, found: FurtherEvidence) -> None:
        """Record what a look proved; one that proved nothing leaves no event."""
        evidence = {name: dict(each.seen) for name, each in found.evidence.items()}
        seen: dict[str, Any] = {"seen_ns": found.seen_ns, "evidence": evidence}
        if found.ended_on:
            self._say(
                run, Action.FAULT_ENDED_EARLY, Kind.FAIL, last_seen_ns=watch.last_seen_ns,
                reason=f"gone on {', '.join(found.ended_on)} before the heal was called", **seen,
            )  # fmt: skip
        elif found.in_effect:
            self._say(run, Action.FAULT_STILL_IN_EFFECT, Kind.INFO, **seen)

    def _healed(self, run: StepRun, struck: Struck) -> None:
        if not struck.done:
            self._say(run, Action.FAULT_NOT_HEALED, Kind.FAIL, reason=struck.reason)
            run.state = State.OVER
            return
        gone = {"gone": list(struck.gone)} if struck.gone else {}
        self._say(
            run, Action.FAULT_HEALED, Kind.OK, called_ns=struck.called_ns, seen_ns=struck.seen_ns,
            evidence=dict(struck.evidence), **gone,
        )  # fmt: skip
        if run.may_try_again:
            run.wait_again()
        else:
            run.state = State.OVER

    def _skip(self, run: StepRun, reason: str) -> None:
        run.state = State.OVER
        self._say(run, Action.FAULT_SKIPPED, Kind.INFO, reason=reason)

    def _say(self, run: StepRun, action: Action, kind: Kind, **value: Any) -> None:
        self._loop.say(action, kind=kind, process=f"fault-{run.number}", **run.about(), **value)
