"""Baselines measured before the injection, so that measuring does not delay it.

While a step waits for its trigger, a background thread measures the baselines of its fault on every
candidate target, again every few seconds. A baseline measured before the cluster changed (a fault
was injected or healed, a container died or started) is discarded.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import Fault, Target
from streamquake.faults.injection.injection import baselines_of
from streamquake.faults.schedule.target import TargetChoice, resolve

REFRESH_AFTER_NS = 3 * 10**9
"""A baseline older than this is measured again."""
STALE_NS = 8 * 10**9
"""A baseline older than this is not used."""
MAX_TARGETS = 12
"""With more candidate targets than this, baselines are measured at the injection instead."""

Baselines = Mapping[str, Mapping[str, Any]]


class BaselineCache:
    """The baselines of one step."""

    def __init__(
        self, fault: Fault, choice: TargetChoice, cluster: Cluster, pool: Executor
    ) -> None:
        self._fault = fault
        self._choice = all_candidates(choice) if fault.has_baseline() else None
        self._cluster = cluster
        self._pool = pool
        self._changes = 0
        self._begun_ns = -REFRESH_AFTER_NS
        self._measuring: Future[None] | None = None
        self._measured: tuple[int, int, Baselines] = (0, -1, {})

    def refresh(self) -> None:
        """Start to measure in the background if the newest baselines are old; never blocks."""
        now_ns = self._cluster.clock.now_ns()
        if self._choice is None or (self._measuring is not None and not self._measuring.done()):
            return
        if now_ns - self._begun_ns >= REFRESH_AFTER_NS or self._measured[1] != self._changes:
            self._begun_ns = now_ns
            self._measuring = self._pool.submit(self._measure, self._choice, self._changes, now_ns)

    def invalidate(self) -> None:
        """Discard all baselines, because the cluster has changed."""
        self._changes += 1

    def of(self, targets: Sequence[Target]) -> Baselines:
        """The baselines of these targets: from the cache, or measured now."""
        measured_ns, changes, measured = self._measured
        age_ns = self._cluster.clock.now_ns() - measured_ns
        known = measured if changes == self._changes and age_ns <= STALE_NS else {}
        missing = [target for target in targets if target.name not in known]
        new = baselines_of(self._fault, self._cluster, missing) if missing else {}
        return {target.name: {**known, **new}[target.name] for target in targets}

    def _measure(self, choice: TargetChoice, changes: int, now_ns: int) -> None:
        """Measure all candidates; a baseline that fails is measured again at the injection."""
        try:
            targets = resolve(choice, self._cluster, random.Random(0))
            if len(targets) <= MAX_TARGETS:
                baselines = baselines_of(self._fault, self._cluster, targets)
                self._measured = (now_ns, changes, baselines)
        except Exception:  # noqa: BLE001 - the injection measures again and reports the error
            return


def all_candidates(choice: TargetChoice) -> TargetChoice | None:
    """A choice of every target that this one may resolve to; None where only the system itself
    knows it, at the injection (`the leader`)."""
    if choice.how == "the":
        return None
    if choice.how == "one of":
        return replace(choice, how="all of")
    ends = tuple(all_candidates(end) for end in choice.ends)
    candidates = tuple(end for end in ends if end is not None)
    return replace(choice, ends=candidates) if len(candidates) == len(ends) else None
