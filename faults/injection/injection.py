"""Inject and heal, the same way for every fault: write the intent, inject, verify the effect; heal,
verify the removal.

Neither raises an error when the system fails: the result states whether the effect was verified,
with the evidence or the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.clock import on_run_clock_ns
from streamquake.cluster.runtime.runtime import InjectionTimes, ResponseLost
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until
from streamquake.faults.fault import Evidence, Fault, Target
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.mechanisms.parallel import run_in_parallel
from streamquake.faults.schedule.target import find_target
from streamquake.topologies.errors import ErrorKind, StreamquakeError, kind_of


@dataclass(frozen=True, kw_only=True)
class InjectionResult:
    """The result of an injection or of a heal, over all its targets.

    The effect began between `called_ns` and `seen_ns` (the run's clock, nanoseconds). `done` is
    False when it was not verified within the limit; `reason` has the cause.
    """

    done: bool
    called_ns: int
    seen_ns: int | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    cause: ErrorKind = ErrorKind.UNDECIDED
    """The kind of the error in `reason`."""
    removed_targets: tuple[str, ...] = ()
    """The targets that no longer existed when the injection was healed."""

    @property
    def width_ms(self) -> float | None:
        """How exactly the moment of the effect is known, milliseconds; None for an effect that was
        not verified."""
        return None if self.seen_ns is None else round((self.seen_ns - self.called_ns) / 1e6, 2)


def baselines_of(
    fault: Fault, cluster: Cluster, targets: Sequence[Target]
) -> Mapping[str, Mapping[str, Any]]:
    """The fault's baseline on each target, measured before the injection. Errors of the measurement
    are raised."""
    return dict(
        run_in_parallel(lambda target: (target.name, fault.baseline(cluster, target)), targets)
    )


def inject_fault(
    intent: Intent, cluster: Cluster, targets: Sequence[Target], *, limit_s: float
) -> InjectionResult:
    """Inject into every target at once, then wait until the effect is verified on each."""
    fault = intent.build_fault()

    def inject(target: Target) -> InjectionTimes:
        return fault.inject(cluster, target)

    return _act(inject, fault, intent, cluster, targets, wanted=True, limit_s=limit_s)


def undo(intent: Intent, cluster: Cluster, log: IntentLog, *, limit_s: float) -> InjectionResult:
    """Heal an injection on its targets as they are now, and verify that the fault is removed.

    A target that was removed counts as healed. A verified heal is written into the log.
    """
    fault = intent.build_fault()

    def heal(target: Target) -> InjectionTimes:
        return fault.heal(cluster, target, intent.baselines.get(target.name, {}))

    targets = targets_of(intent, cluster)
    injected = _act(heal, fault, intent, cluster, targets, wanted=False, limit_s=limit_s)
    if injected.done:
        log.record_heal(intent)
    existing = {target.name for target in targets}
    return replace(
        injected, removed_targets=tuple(name for name in intent.names if name not in existing)
    )


def evidence_now(intent: Intent, cluster: Cluster) -> Mapping[str, Evidence]:
    """The evidence of an open injection now, on each of its targets that still exists."""
    fault = intent.build_fault()
    return {
        target.name: fault.evidence(cluster, target, intent.baselines.get(target.name, {}))
        for target in targets_of(intent, cluster)
    }


def targets_of(intent: Intent, cluster: Cluster) -> tuple[Target, ...]:
    """The targets of an intent as they are now, without those that no longer exist."""
    found = (_find(name, cluster) for name in intent.names)
    return tuple(target for target in found if target is not None)


def _find(name: str, cluster: Cluster) -> Target | None:
    try:
        return find_target(name, cluster)
    except LookupError:
        return None


def _act(
    act: Callable[[Target], InjectionTimes],
    fault: Fault,
    intent: Intent,
    cluster: Cluster,
    targets: Sequence[Target],
    *,
    wanted: bool,
    limit_s: float,
) -> InjectionResult:
    called_ns = cluster.clock.now_ns()
    try:
        in_turn = fault.one_by_one and wanted
        times = list(map(act, targets)) if in_turn else run_in_parallel(act, targets)
        evidence = {
            target.name: _await_evidence(fault, intent, cluster, target, wanted, limit_s)
            for target in targets
        }
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a fault raises, the run heals
        return InjectionResult(
            done=False,
            called_ns=called_ns,
            reason=f"{type(error).__name__}: {error}",
            cause=kind_of(error),
        )
    if not times and wanted:
        return InjectionResult(
            done=False, called_ns=called_ns, reason="there is no target to inject into"
        )
    if not times:
        now_ns = cluster.clock.now_ns()
        return InjectionResult(
            done=True, called_ns=called_ns, seen_ns=now_ns, reason="target removed"
        )
    return InjectionResult(
        done=True,
        called_ns=on_run_clock_ns(cluster.clock, min(time.called_ns for time in times)),
        seen_ns=on_run_clock_ns(cluster.clock, max(time.seen_ns for time in times)),
        evidence={"watched": times[0].how, **evidence},
    )


def _await_evidence(
    fault: Fault, intent: Intent, cluster: Cluster, target: Target, wanted: bool, limit_s: float
) -> Mapping[str, Any]:
    baseline = intent.baselines.get(target.name, {})
    last = Evidence(in_effect=False, healed=False)

    def pending() -> str | None:
        nonlocal last
        try:
            last = fault.evidence(cluster, target, baseline)
        except ResponseLost as lost:
            return str(lost)  # no evidence yet; the next poll may have some
        reached = last.in_effect if wanted else last.healed
        return None if reached else f"last observation: {dict(last.observations)}"

    state = "in effect" if wanted else "healed"
    try:
        wait_until(
            pending,
            what=f"{fault.name} on {target.name} {state}",
            limit_s=limit_s,
            clock=cluster.clock,
            every_s=0.05,
        )
    except NotReadyInTime as error:
        raise NotInEffect(str(error)) from error
    return {**last.observations, "before": dict(baseline)} if baseline else last.observations


class NotInEffect(StreamquakeError):
    """The effect, or its removal, was not verified within the limit."""

    kind = ErrorKind.UNDECIDED
