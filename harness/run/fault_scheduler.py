"""Runs the steps of a fault schedule against the cluster.

Injections and heals run in background threads, so that the loop continues to watch for other
triggers. A step whose target is already disturbed in the same way is skipped, and the skip is
recorded.
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
from streamquake.harness.run.baselines import BaselineCache
from streamquake.harness.run.effect_watch import EffectWatch
from streamquake.harness.run.event_loop import EventLoop, Sample
from streamquake.harness.run.step_run import SkippedStep, StepRun, StepState
from streamquake.reports.record.event import Action, Event

CLUSTER_CHANGES = frozenset(
    {
        Action.FAULT_CALLED,
        Action.FAULT_IN_EFFECT,
        Action.HEAL_CALLED,
        Action.FAULT_HEALED,
        Action.CONTAINER_DIED,
        Action.CONTAINER_STARTED,
        Action.SANDBOX_DIED,
        Action.NODE_REVIVED,
    }
)
"""Events that change the cluster: baselines measured before them are discarded."""
BASELINE_LEAD_NS = 6 * 10**9
"""Baselines are measured this long before an injection whose moment is known."""


class FaultScheduler:
    """Runs all fault steps of one run."""

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
        self._start_ns = loop.clock.now_ns()
        self._trigger_limit_ns = self._start_ns + int(trigger_s * 1e9)
        self._targets_lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=max(2, len(steps)), thread_name_prefix="fault")
        self._checks = ThreadPoolExecutor(
            max_workers=max(2, len(steps)), thread_name_prefix="check"
        )
        self._measurements = ThreadPoolExecutor(max_workers=2, thread_name_prefix="baseline")
        self.runs = [self._step_run(number, steps, seed) for number in range(len(steps))]
        loop.listen(self._on_event)
        loop.listen_to_samples(self._on_sample)

    def _step_run(self, number: int, steps: Sequence[Step], seed: int) -> StepRun:
        step, clock = steps[number], self._loop.clock
        choice = parse_target(step.target)
        return StepRun(
            number,
            step,
            trigger_of(step.when, clock, steady_ns=self._start_ns, steps=steps[:number]),
            random.Random(f"{seed}:faults:{number}"),
            BaselineCache(step.build_fault(), choice, self._cluster, self._measurements),
        )

    def pending(self) -> str | None:
        """Advance every step. Returns why the schedule is not done yet, or None when it is done.

        A step without `for_s` stays in effect until `heal_all`.
        """
        for run in self.runs:
            self._advance(run)
        for run in self.runs:
            stays_in_effect = run.state == StepState.ACTIVE and run.heal_due_ns is None
            if run.state != StepState.OVER and not stays_in_effect:
                return f"{run.step.fault} on {run.step.target} is {run.state}"
        return self._final_checks_pending()

    def _final_checks_pending(self) -> str | None:
        """Request a final check of the faults that stay in effect until `heal_all`; `heal_all`
        itself waits for no check."""
        now_ns = self._loop.clock.now_ns()
        # A list, not a generator: all final checks begin together.
        checks = [
            (run, run.watch.final_check_is_done(now_ns))
            for run in self.runs
            if run.watch is not None
        ]
        steps = (f"{run.step.fault} on {run.step.target}" for run, done in checks if not done)
        return next((f"{step} is verified once more" for step in steps), None)

    def active_faults(self) -> tuple[str, ...]:
        """The faults in effect now, for the progress display."""
        return tuple(
            f"{run.step.fault} on {', '.join(run.names)}"
            for run in self.runs
            if run.state in (StepState.ACTIVE, StepState.HEALING)
        )

    def nodes_kept_down(self) -> tuple[str, ...]:
        """The nodes whose processes a step of the schedule keeps down now."""
        return tuple(name for run in self._runs_keeping_down() for name in run.names)

    def _runs_keeping_down(self) -> list[StepRun]:
        states = (StepState.INJECTING, StepState.ACTIVE, StepState.HEALING)
        return [run for run in self.runs if run.state in states and run.fault.touches == "process"]

    def _kept_down(self, excluding: StepRun) -> set[str]:
        """The nodes that the other steps keep down now."""
        return {
            name for run in self._runs_keeping_down() if run is not excluding for name in run.names
        }

    def heal_all(self) -> None:
        """Heal every open fault in any state; a heal that failed is tried once more."""
        for run in self.runs:
            if run.work is not None:
                self._finish(run, run.work.result())
        for run in self.runs:
            if run.state == StepState.ACTIVE or (run.intent in self._intents.open_intents()):
                self._begin_heal(run)
        for run in self.runs:
            if run.work is not None:
                self._finish(run, run.work.result())
        self._pool.shutdown()
        self._checks.shutdown(wait=False, cancel_futures=True)
        self._measurements.shutdown(wait=False, cancel_futures=True)

    def _on_event(self, event: Event) -> None:
        for run in self.runs:
            run.trigger.observe(event)
            if event.action in CLUSTER_CHANGES:
                run.baselines.invalidate()
            self._check_window(run)

    def _on_sample(self, sample: Sample) -> None:
        for run in self.runs:
            if run.state == StepState.WAITING:
                run.trigger.add_sample(sample.series, sample.where, sample.value, sample.at_ns)

    def _check_window(self, run: StepRun) -> None:
        """Record that an injection missed its window, once, as soon as this is known."""
        if run.effect_times_ns is None or run.has_missed_window:
            return
        called_ns, seen_ns = run.effect_times_ns
        if reason := run.trigger.missed_reason(called_ns, seen_ns):
            run.has_missed_window = True
            self._record(run, Action.FAULT_MISSED_WINDOW, seen_ns=seen_ns, reason=reason)

    def _advance(self, run: StepRun) -> None:
        now_ns = self._loop.clock.now_ns()
        if run.work is not None:
            if run.work.done():
                self._finish(run, run.work.result())
        elif run.state == StepState.WAITING:
            self._await_trigger(run, now_ns)
        elif run.state == StepState.ACTIVE and (run.may_retry or run.heal_is_due(now_ns)):
            self._begin_heal(run)
        elif run.watch is not None and (verification := run.watch.advance(now_ns)) is not None:
            self._record_check(run, run.watch, verification)

    def _await_trigger(self, run: StepRun, now_ns: int) -> None:
        due_ns = run.trigger.due_ns
        if run.trigger.is_due(now_ns):
            self._begin_injection(run)
        elif run.trigger.impossible_reason:
            self._skip(run, run.trigger.impossible_reason)
        elif due_ns is None and now_ns >= self._trigger_limit_ns:
            self._skip(run, run.trigger.unfired_reason())
        elif due_ns is None or due_ns - now_ns < BASELINE_LEAD_NS:
            run.baselines.refresh()

    def _begin_injection(self, run: StepRun) -> None:
        run.trigger.fire()
        run.tries += 1
        run.state = StepState.INJECTING
        self._submit(run, lambda: self._inject_fault(run))

    def _inject_fault(self, run: StepRun) -> InjectionResult | SkippedStep:
        """Choose the targets, write the intent and inject; runs in a background thread."""
        try:
            if reason := self._claim(run):
                return SkippedStep(reason=reason)
            event = run.trigger.event
            trigger = {} if event is None else {"trigger_index": event.index}
            params = dict(run.step.params)
            self._record(run, Action.FAULT_CALLED, params=params, **trigger)
            run.intent = self._intents.write_intent(
                step=run.number,
                fault=run.fault,
                target=run.step.target,
                names=run.names,
                baselines=run.baselines.of(run.targets),
            )
        except Exception as error:  # noqa: BLE001 - nothing was injected yet: the run continues
            return SkippedStep(reason=f"{type(error).__name__}: {error}")
        return inject_fault(run.intent, self._cluster, run.targets, limit_s=self._effect_s)

    def _claim(self, run: StepRun) -> str:
        """Resolve and reserve the targets. Returns why they are not available, or an empty
        string."""
        try:
            choice = parse_target(run.step.target)
            targets = resolve(choice, self._cluster, run.rng, run.last_names)
        except LookupError as error:
            return str(error)
        with self._targets_lock:
            if taken := self._disturbed_by_others(run) & {target.name for target in targets}:
                return f"{min(taken)} is already disturbed in the same way"
            run.targets = targets
        return ""

    def _disturbed_by_others(self, run: StepRun) -> set[str]:
        """The targets that other steps disturb now in the same way."""
        return {
            name
            for other in self.runs
            if other is not run
            and other.state in (StepState.INJECTING, StepState.ACTIVE, StepState.HEALING)
            and other.fault.touches == run.fault.touches
            for name in other.names
        }

    def _begin_heal(self, run: StepRun) -> None:
        if (intent := run.intent) is None:  # nothing was injected
            run.state = StepState.OVER
            return
        if run.watch is not None:
            self._end_watch(run, run.watch)
        self._record(run, Action.HEAL_CALLED, **run.last_checks())
        run.state = StepState.HEALING
        self._submit(
            run, lambda: undo(intent, self._cluster, self._intents, limit_s=self._effect_s)
        )

    def _end_watch(self, run: StepRun, watch: EffectWatch) -> None:
        """Record the last check, and a failure if the effect was not verified for too long."""
        if (verification := watch.take_result()) is not None:
            self._record_check(run, watch, verification)
        now_ns = self._loop.clock.now_ns()
        if unverified_ns := watch.unverified_ns(now_ns):
            self._record(
                run,
                Action.FAULT_NOT_VERIFIED,
                last_seen_ns=watch.last_verified_ns,
                seen_ns=now_ns,
                reason=(
                    f"no check found it in effect or in place in the {unverified_ns / 1e9:.1f} s "
                    "before its heal"
                ),
            )
        run.watch, run.verified_ns = None, watch.last_verified_ns
        run.in_place_ns = watch.last_in_place_ns

    def _submit(self, run: StepRun, work: Callable[[], InjectionResult | SkippedStep]) -> None:
        run.work = self._pool.submit(work)
        run.work.add_done_callback(lambda _: self._loop.wake())

    def _finish(self, run: StepRun, result: InjectionResult | SkippedStep) -> None:
        run.work = None
        if isinstance(result, SkippedStep):
            self._skip(run, result.reason)
        elif run.state == StepState.INJECTING:
            self._injection_done(run, result)
        else:
            self._heal_done(run, result)

    def _injection_done(self, run: StepRun, result: InjectionResult) -> None:
        run.state = StepState.ACTIVE
        if not result.done or result.seen_ns is None:
            self._record(run, Action.FAULT_NOT_IN_EFFECT, reason=result.reason)
            run.heal_due_ns = self._loop.clock.now_ns()  # at once: a part of it may be in effect
            return
        run.effect_times_ns = result.called_ns, result.seen_ns
        self._record(
            run,
            Action.FAULT_IN_EFFECT,
            called_ns=result.called_ns,
            seen_ns=result.seen_ns,
            evidence=dict(result.evidence),
            **run.lateness(),
        )
        if run.step.for_s is not None:
            run.heal_due_ns = result.seen_ns + int(run.step.for_s * 1e9)
        self._check_window(run)
        if run.fault.lasts and (intent := run.intent) is not None:
            run.watch = EffectWatch(
                lambda: self._verify_again(run, intent),
                self._checks,
                self._loop.wake,
                effect_ns=result.seen_ns,
                heal_due_ns=run.heal_due_ns,
            )

    def _verify_again(self, run: StepRun, intent: Intent) -> RepeatedVerification:
        """Verify the effect once more. Where another step of the schedule keeps a node down, a
        missing effect does not prove that the fault has ended."""
        down = self._kept_down(run)
        verification = verify_again(intent, self._cluster)
        down |= self._kept_down(run)
        recorded = {
            name: check
            for name, check in verification.evidence.items()
            if check.in_effect or name not in down
        }
        return replace(verification, evidence=recorded, kept_down=not down.isdisjoint(run.names))

    def _record_check(
        self, run: StepRun, watch: EffectWatch, verification: RepeatedVerification
    ) -> None:
        """Record what a check proved; a check that proved nothing leaves no event."""
        evidence = {name: dict(check.observations) for name, check in verification.evidence.items()}
        observed: dict[str, Any] = {"seen_ns": verification.seen_ns, "evidence": evidence}
        if verification.ended_on:
            self._record(
                run,
                Action.FAULT_ENDED_EARLY,
                last_seen_ns=watch.last_verified_ns,
                reason=f"no longer in effect on {', '.join(verification.ended_on)} before the heal",
                **observed,
            )
        elif verification.in_effect:
            self._record(run, Action.FAULT_STILL_IN_EFFECT, **observed)

    def _heal_done(self, run: StepRun, result: InjectionResult) -> None:
        if not result.done:
            self._record(run, Action.FAULT_NOT_HEALED, reason=result.reason)
            run.state = StepState.OVER
            return
        removed = {"gone": list(result.removed_targets)} if result.removed_targets else {}
        self._record(
            run,
            Action.FAULT_HEALED,
            called_ns=result.called_ns,
            seen_ns=result.seen_ns,
            evidence=dict(result.evidence),
            **removed,
        )
        if run.may_retry:
            run.reset_for_retry()
        else:
            run.state = StepState.OVER

    def _skip(self, run: StepRun, reason: str) -> None:
        run.state = StepState.OVER
        self._record(run, Action.FAULT_SKIPPED, reason=reason)

    def _record(self, run: StepRun, action: Action, **value: Any) -> None:
        self._loop.record(action, process=f"fault-{run.number}", **run.identity(), **value)
