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
from streamquake.faults.injection.injection import InjectionResult, inject_fault, undo
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.injection.verification import RepeatedVerification, verify_again
from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.target import parse_target, resolve
from streamquake.faults.schedule.trigger import trigger_of
from streamquake.harness.run.baselines import BaselinesAhead
from streamquake.harness.run.effect_watch import EffectWatch
from streamquake.harness.run.event_loop import EventLoop, Sample
from streamquake.harness.run.step_run import SkippedStep, StepRun, StepState
from streamquake.reports.record.event import Action, Event, Kind

CHANGES = frozenset(
    {
        Action.FAULT_CALLED,
        Action.FAULT_IN_EFFECT,
        Action.HEAL_CALLED,
        Action.FAULT_HEALED,
        Action.CONTAINER_DIED,
        Action.CONTAINER_STARTED,
        Action.NODE_REVIVED,
    }
)
"""After these the cluster is not what it was when baselines were measured."""
AHEAD_NS = 6 * 10**9
"""How long before a known moment baselines begin to be measured."""


class FaultScheduler:
    """All steps of one run."""

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        cluster: Cluster,
        loop: EventLoop,
        intents: IntentLog,
        seed: int,
        effect_s: float,
        trigger_s: float,
    ) -> None:
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
            number,
            step,
            trigger_of(step.when, clock, steady_ns=self._began_ns, steps=steps[:number]),
            random.Random(f"{seed}:faults:{number}"),
            BaselinesAhead(step.made(), choice, self._cluster, self._measuring),
        )

    def pending(self) -> str | None:
        """Advance every step; why the schedule is not through yet, or None when it is.

        A step without `for_s` stays in effect until `heal_all`.
        """
        for run in self.runs:
            self._advance(run)
        for run in self.runs:
            stays = run.state == StepState.ACTIVE and run.heal_due_ns is None
            if run.state != StepState.OVER and not stays:
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
            if run.state in (StepState.ACTIVE, StepState.HEALING)
        )

    def holding(self) -> tuple[str, ...]:
        """The nodes whose processes a step of the schedule keeps down now."""
        return tuple(name for run in self._holding() for name in run.names)

    def _holding(self) -> list[StepRun]:
        held = (StepState.INJECTING, StepState.ACTIVE, StepState.HEALING)
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
            if run.state == StepState.ACTIVE or (run.intent in self._intents.open()):
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
            if run.state == StepState.WAITING:
                run.trigger.measure(sample.series, sample.where, sample.value, sample.at_ns)

    def _judge_window(self, run: StepRun) -> None:
        """Say once that a strike came too late, as soon as it is known."""
        if run.effect_delay is None or run.missed:
            return
        called_ns, seen_ns = run.effect_delay
        if reason := run.trigger.missed(called_ns, seen_ns):
            run.missed = True
            self._record(run, Action.FAULT_MISSED_WINDOW, Kind.FAIL, seen_ns=seen_ns, reason=reason)

    def _advance(self, run: StepRun) -> None:
        now_ns = self._loop.clock.now_ns()
        if run.work is not None:
            if run.work.done():
                self._finish(run, run.work.result())
        elif run.state == StepState.WAITING:
            self._await_trigger(run, now_ns)
        elif run.state == StepState.ACTIVE and (run.may_try_again or run.heal_is_due(now_ns)):
            self._begin_heal(run)
        elif run.watch is not None and (found := run.watch.advance(now_ns)) is not None:
            self._looked(run, run.watch, found)

    def _await_trigger(self, run: StepRun, now_ns: int) -> None:
        due_ns = run.trigger.due_ns
        if run.trigger.is_due(now_ns):
            self._begin_injection(run)
        elif run.trigger.hopeless:
            self._skip(run, run.trigger.hopeless)
        elif due_ns is None and now_ns >= self._trigger_limit_ns:
            self._skip(run, run.trigger.missing())
        elif due_ns is None or due_ns - now_ns < AHEAD_NS:
            run.baselines.refresh()

    def _begin_injection(self, run: StepRun) -> None:
        run.trigger.fire()
        run.tries += 1
        run.state = StepState.INJECTING
        self._begin(run, lambda: self._inject_fault(run))

    def _inject_fault(self, run: StepRun) -> InjectionResult | SkippedStep:
        """Choose the targets, write the intent, strike; in a thread of its own."""
        try:
            if reason := self._claim(run):
                return SkippedStep(reason=reason)
            event = run.trigger.event
            why = {} if event is None else {"trigger_index": event.index}
            params = dict(run.step.params)
            self._record(run, Action.FAULT_CALLED, Kind.INVOKE, params=params, **why)
            run.intent = self._intents.intend(
                step=run.number,
                fault=run.fault,
                target=run.step.target,
                names=run.names,
                baselines=run.baselines.of(run.targets),
            )
        except Exception as error:  # noqa: BLE001 - nothing was tried yet: the step is said, the run goes on
            return SkippedStep(reason=f"{type(error).__name__}: {error}")
        return inject_fault(run.intent, self._cluster, run.targets, limit_s=self._effect_s)

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
            and other.state in (StepState.INJECTING, StepState.ACTIVE, StepState.HEALING)
            and other.fault.touches == run.fault.touches
            for name in other.names
        }

    def _begin_heal(self, run: StepRun) -> None:
        if (intent := run.intent) is None:  # nothing was tried
            run.state = StepState.OVER
            return
        if run.watch is not None:
            self._end_watch(run, run.watch)
        verified = {} if run.verified_ns is None else {"last_seen_ns": run.verified_ns}
        self._record(run, Action.HEAL_CALLED, Kind.INVOKE, **verified)
        run.state = StepState.HEALING
        self._begin(run, lambda: undo(intent, self._cluster, self._intents, limit_s=self._effect_s))

    def _end_watch(self, run: StepRun, watch: EffectWatch) -> None:
        """Take what the last look found; record where the effect was not verified for long."""
        if (found := watch.finished()) is not None:
            self._looked(run, watch, found)
        now_ns = self._loop.clock.now_ns()
        if unverified_ns := watch.unverified_ns(now_ns):
            self._record(
                run,
                Action.FAULT_NOT_VERIFIED,
                Kind.FAIL,
                last_seen_ns=watch.last_seen_ns,
                seen_ns=now_ns,
                reason=(
                    f"no look found it in effect or in place in the {unverified_ns / 1e9:.1f} s "
                    "before its heal"
                ),
            )
        run.watch, run.verified_ns = None, watch.last_seen_ns

    def _begin(self, run: StepRun, work: Callable[[], InjectionResult | SkippedStep]) -> None:
        run.work = self._pool.submit(work)
        run.work.add_done_callback(lambda _: self._loop.wake())

    def _finish(self, run: StepRun, arrived: InjectionResult | SkippedStep) -> None:
        run.work = None
        if isinstance(arrived, SkippedStep):
            self._skip(run, arrived.reason)
        elif run.state == StepState.INJECTING:
            self._injection(run, arrived)
        else:
            self._healed(run, arrived)

    def _injection(self, run: StepRun, injected: InjectionResult) -> None:
        run.state = StepState.ACTIVE
        if not injected.done or injected.seen_ns is None:
            self._record(run, Action.FAULT_NOT_IN_EFFECT, Kind.FAIL, reason=injected.reason)
            run.heal_due_ns = self._loop.clock.now_ns()  # at once: it may be half laid
            return
        run.effect_delay = injected.called_ns, injected.seen_ns
        self._record(
            run,
            Action.FAULT_IN_EFFECT,
            Kind.OK,
            called_ns=injected.called_ns,
            seen_ns=injected.seen_ns,
            evidence=dict(injected.evidence),
            **run.lateness(),
        )
        if run.step.for_s is not None:
            run.heal_due_ns = injected.seen_ns + int(run.step.for_s * 1e9)
        self._judge_window(run)
        if run.fault.lasts and (intent := run.intent) is not None:
            run.watch = EffectWatch(
                lambda: self._verify_again(run, intent),
                self._looking,
                self._loop.wake,
                seen_ns=injected.seen_ns,
                heal_due_ns=run.heal_due_ns,
            )

    def _verify_again(self, run: StepRun, intent: Intent) -> RepeatedVerification:
        """One look; it proves no end where another step keeps the node down, as the schedule has
        it."""
        down = self._kept_down(run)
        found = verify_again(intent, self._cluster)
        down |= self._kept_down(run)
        recorded = {
            n: each for n, each in found.evidence.items() if each.in_effect or n not in down
        }
        return replace(found, evidence=recorded, kept_down=not down.isdisjoint(run.names))

    def _looked(self, run: StepRun, watch: EffectWatch, found: RepeatedVerification) -> None:
        """Record what a look proved; one that proved nothing leaves no event."""
        evidence = {name: dict(each.seen) for name, each in found.evidence.items()}
        seen: dict[str, Any] = {"seen_ns": found.seen_ns, "evidence": evidence}
        if found.ended_on:
            self._record(
                run,
                Action.FAULT_ENDED_EARLY,
                Kind.FAIL,
                last_seen_ns=watch.last_seen_ns,
                reason=f"gone on {', '.join(found.ended_on)} before the heal was called",
                **seen,
            )
        elif found.in_effect:
            self._record(run, Action.FAULT_STILL_IN_EFFECT, Kind.INFO, **seen)

    def _healed(self, run: StepRun, injected: InjectionResult) -> None:
        if not injected.done:
            self._record(run, Action.FAULT_NOT_HEALED, Kind.FAIL, reason=injected.reason)
            run.state = StepState.OVER
            return
        gone = {"gone": list(injected.gone)} if injected.gone else {}
        self._record(
            run,
            Action.FAULT_HEALED,
            Kind.OK,
            called_ns=injected.called_ns,
            seen_ns=injected.seen_ns,
            evidence=dict(injected.evidence),
            **gone,
        )
        if run.may_try_again:
            run.wait_again()
        else:
            run.state = StepState.OVER

    def _skip(self, run: StepRun, reason: str) -> None:
        run.state = StepState.OVER
        self._record(run, Action.FAULT_SKIPPED, Kind.INFO, reason=reason)

    def _record(self, run: StepRun, action: Action, kind: Kind, **value: Any) -> None:
        self._loop.record(action, kind=kind, process=f"fault-{run.number}", **run.about(), **value)
