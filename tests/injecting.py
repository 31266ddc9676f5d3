"""Faults injected manually, as a run injects them: target, baselines, intent, injection, evidence.

For tests that watch one fault at a time, on a cluster in memory or a real one.
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
from streamquake.faults.schedule.target import parse_target, resolve


def made(name: str, **params: Any) -> Fault:
    """A registered fault by its name. Raises ValidationError for parameters it does not take."""
    return faults[name](**params)


class FaultInjector:
    """Injects faults into one cluster and heals them, with a log of its intents.

    `limit_s` is how long an effect, or its end, is waited for where a call says nothing else.
    `at` is the target, as in an experiment, where a call names none; without either it is the
    fault's usual one. An injection raises LookupError for a target that is not there.
    """

    def __init__(
        self, cluster: Cluster, log: IntentLog, *, limit_s: float, at: str | None = None
    ) -> None:
        self.cluster = cluster
        self.log = log
        self._limit_s = limit_s
        self._at = at

    def targets(self, fault: Fault, at: str | None = None) -> tuple[Target, ...]:
        """The targets of an injection now; `one of` draws the same each time."""
        return resolve(parse_target(self._aim(fault, at)), self.cluster, random.Random(0))

    def intend(self, fault: Fault, at: str | None = None) -> Intent:
        """The intent in the log, with the baselines in it, and nothing injected."""
        return self._intend(fault, at, self.targets(fault, at))

    def inject_fault(
        self, fault: Fault, at: str | None = None, *, limit_s: float | None = None
    ) -> tuple[Intent, InjectionResult]:
        """The injection and its result: the caller judges whether it took effect."""
        targets = self.targets(fault, at)
        intent = self._intend(fault, at, targets)
        return intent, self._inject_fault(intent, targets, limit_s)

    def undo(self, intent: Intent, *, limit_s: float | None = None) -> InjectionResult:
        """One heal and what came of it: whether it is gone is for the caller to judge."""
        return undo(intent, self.cluster, self.log, limit_s=limit_s or self._limit_s)

    def heal(self, intent: Intent) -> InjectionResult:
        """Undo twice and see it gone both times, since a heal must not harm what is whole.

        Returns what came of the first. Raises AssertionError with the reason.
        """
        first = self._undone(intent)
        self._undone(intent)
        return first

    @contextmanager
    def in_effect(
        self, fault: Fault, at: str | None = None
    ) -> Iterator[tuple[Intent, InjectionResult]]:
        """The fault is in effect for the length of the block, and healed however that ends.

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
        """Inject, verify, heal, verify the removal; returns the evidence, by target."""
        with self.in_effect(fault, at) as (_, injected):
            pass
        return injected.evidence

    def _aim(self, fault: Fault, at: str | None) -> str:
        return at or self._at or fault.usual

    def _intend(self, fault: Fault, at: str | None, targets: tuple[Target, ...]) -> Intent:
        return self.log.write_intent(
            step=0,
            fault=fault,
            target=self._aim(fault, at),
            names=[target.name for target in targets],
            baselines=baselines_of(fault, self.cluster, targets),
        )

    def _inject_fault(
        self, intent: Intent, targets: tuple[Target, ...], limit_s: float | None = None
    ) -> InjectionResult:
        return inject_fault(intent, self.cluster, targets, limit_s=limit_s or self._limit_s)

    def _undone(self, intent: Intent) -> InjectionResult:
        healed = self.undo(intent)
        assert healed.done, healed.reason
        return healed
