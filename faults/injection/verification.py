"""Verify a fault in effect again: whether its evidence still holds, before the heal.

A poll of a target proves that the effect is there, or that it has ended, or nothing (the node did
not answer, or the system was idle for the moment). Only the first two are recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import Evidence, Fault, Target
from streamquake.faults.injection.injection import targets_of
from streamquake.faults.injection.intents import Intent
from streamquake.faults.mechanisms.parallel import run_in_parallel


@dataclass(frozen=True, kw_only=True)
class RepeatedVerification:
    """The evidence of one poll. `seen_ns` is the end of the poll on the run's clock, nanoseconds;
    `evidence` has the targets that answered."""

    seen_ns: int
    evidence: Mapping[str, Evidence]
    targets: int
    """How many targets the injection has."""
    kept_down: bool = False
    """Whether another step of the schedule kept a target down, where nothing can be verified."""

    @property
    def in_effect(self) -> bool:
        """Whether the effect was verified on every target."""
        return self._complete and all(found.in_effect for found in self.evidence.values())

    @property
    def still_holds(self) -> bool:
        """Whether on every target the effect was verified, or everything that the injection added
        is in place: an idle system gives no other evidence."""
        found = self.evidence.values()
        return self._complete and all(one.in_effect or one.in_place for one in found)

    @property
    def _complete(self) -> bool:
        """Whether every target answered."""
        return len(self.evidence) == self.targets > 0

    @property
    def ended_on(self) -> tuple[str, ...]:
        """The targets on which the effect is proven to have ended."""
        return tuple(name for name, found in self.evidence.items() if found.ended)


def verify_again(intent: Intent, cluster: Cluster) -> RepeatedVerification:
    """Poll the evidence of an open injection, on all targets at once; raises nothing."""
    fault, targets = intent.build_fault(), targets_of(intent, cluster)

    def poll(target: Target) -> tuple[str, Evidence | None]:
        return target.name, _poll_evidence(fault, intent, cluster, target)

    found = run_in_parallel(poll, targets)
    answered = {name: evidence for name, evidence in found if evidence is not None}
    return RepeatedVerification(
        seen_ns=cluster.clock.now_ns(), evidence=answered, targets=len(intent.names)
    )


def _poll_evidence(
    fault: Fault, intent: Intent, cluster: Cluster, target: Target
) -> Evidence | None:
    try:
        return fault.evidence(cluster, target, intent.baselines.get(target.name, {}))
    except (Exception, SystemExit):  # noqa: BLE001 - a failed poll proves nothing
        return None
