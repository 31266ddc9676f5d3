"""Injects single faults in the way of a run: target, baselines, intent, injection, evidence.

For tests of one fault at a time, on a fake or a real cluster.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import Fault, Target, faults
from streamquake.faults.injection.injection import InjectionResult, baselines_of, inject_fault, undo
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.requirement import unmet
from streamquake.faults.schedule.target import parse_target, resolve


def build_fault(name: str, **params: Any) -> Fault:
    """A registered fault with parameters. Raises ValidationError for parameters that it does not
    have."""
    return faults[name](**params)


class FaultInjector:
    """Injects faults into one cluster and heals them, with a log of its intents.

    `limit_s` is the default limit of the wait for an effect or its removal. `at` is the default
    target, in the form of an experiment; without one it is the fault's usual target. An injection
    raises LookupError for a target that does not exist.
    """

    def __init__(
        self, cluster: Cluster, log: IntentLog, *, limit_s: float, at: str | None = None
    ) -> None:
        self.cluster = cluster
        self.log = log
        self._limit_s = limit_s
        self._at = at
        self._acted: set[str] = set()
        """The intents whose effect was verified here."""

    def targets(self, fault: Fault, at: str | None = None) -> tuple[Target, ...]:
        """The current targets of an injection; `one of` always draws the same node."""
        return resolve(parse_target(self._target_text(fault, at)), self.cluster, random.Random(0))

    def intend(self, fault: Fault, at: str | None = None) -> Intent:
        """Log an intent with its baselines, and inject nothing."""
        return self._intend(fault, at, self.targets(fault, at))

    def inject_fault(
        self, fault: Fault, at: str | None = None, *, limit_s: float | None = None
    ) -> tuple[Intent, InjectionResult]:
        """Inject a fault. The caller must check the result for the effect. Raises AssertionError
        where its evidence contradicts the effect."""
        targets = self.targets(fault, at)
        intent = self._intend(fault, at, targets)
        return intent, self._inject_fault(intent, targets, limit_s)

    def undo(self, intent: Intent, *, limit_s: float | None = None) -> InjectionResult:
        """Heal a fault once. The caller must check the result for the removal. Raises
        AssertionError where its evidence contradicts the removal."""
        healed = undo(intent, self.cluster, self.log, limit_s=limit_s or self._limit_s)
        for found, before in _observations(intent, healed) if intent.id in self._acted else ():
            contradictions = list(unmet(found, intent.build_fault().heal_requires(before)))
            assert not contradictions, f"{found}: {contradictions}"
        return healed

    def heal(self, intent: Intent) -> InjectionResult:
        """Heal a fault twice and verify both removals, since a second heal must have no effect.

        Returns the result of the first heal. Raises AssertionError with the reason.
        """
        first = self._heal_once(intent)
        self._heal_once(intent)
        return first

    @contextmanager
    def in_effect(
        self, fault: Fault, at: str | None = None
    ) -> Iterator[tuple[Intent, InjectionResult]]:
        """Inject a fault that is in effect during the block. It is healed even if the block raises.

        Raises AssertionError with the reason if its effect or its removal is not verified.
        """
        targets = self.targets(fault, at)
        intent = self._intend(fault, at, targets)
        try:
            injected = self._inject_fault(intent, targets)
            print(fault.name, injected)  # pytest shows it if the test fails
            assert injected.done, injected.reason
            yield intent, injected
        finally:
            print("healed", self.heal(intent))

    def took_effect(self, fault: Fault, at: str | None = None) -> Mapping[str, Any]:
        """Inject and heal a fault and verify both. Returns the evidence by target."""
        with self.in_effect(fault, at) as (_, injected):
            pass
        return injected.evidence

    def _target_text(self, fault: Fault, at: str | None) -> str:
        return at or self._at or fault.usual

    def _intend(self, fault: Fault, at: str | None, targets: tuple[Target, ...]) -> Intent:
        return self.log.write_intent(
            step=0,
            fault=fault,
            target=self._target_text(fault, at),
            names=[target.name for target in targets],
            baselines=baselines_of(fault, self.cluster, targets),
        )

    def _inject_fault(
        self, intent: Intent, targets: tuple[Target, ...], limit_s: float | None = None
    ) -> InjectionResult:
        injected = inject_fault(intent, self.cluster, targets, limit_s=limit_s or self._limit_s)
        for found, before in _observations(intent, injected):
            contradictions = list(intent.build_fault().contradicted_effect(found, before))
            assert not contradictions, f"{found}: {contradictions}"
        if injected.done:
            self._acted.add(intent.id)
        return injected

    def _heal_once(self, intent: Intent) -> InjectionResult:
        healed = self.undo(intent)
        assert healed.done, healed.reason
        return healed


def _observations(
    intent: Intent, result: InjectionResult
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """What was observed on each target of a verified result, and what was before."""
    for name, found in result.evidence.items() if result.done else ():
        if name in intent.names:
            yield found, intent.baselines.get(name, {})
