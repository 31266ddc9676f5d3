"""Baselines taken ahead of the strike, so that measuring does not delay it.

A step that waits for its trigger has what its fault compares with measured in the background, on
every target it may come to mean, again every few seconds. What was measured before the cluster
changed (a fault struck or healed, a container died or started) is thrown away.
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

AGAIN_NS = 3 * 10**9
"""A baseline older than this is measured again."""
STALE_NS = 8 * 10**9
"""One older than this is not used."""
MOST = 12
"""More possible targets than this are measured at the strike instead."""

Baselines = Mapping[str, Mapping[str, Any]]


class BaselinesAhead:
    """The baselines of one step."""

    def __init__(
        self, fault: Fault, choice: TargetChoice, cluster: Cluster, pool: Executor
    ) -> None:
        self._fault = fault
        self._choice = widest(choice) if measures(fault) else None
        self._cluster = cluster
        self._pool = pool
        self._changes = 0
        self._asked_ns = -AGAIN_NS
        self._work: Future[None] | None = None
        self._kept: tuple[int, int, Baselines] = (0, -1, {})

    def refresh(self) -> None:
        """Begin to measure when what there is is old; returns at once."""
        now_ns = self._cluster.clock.now_ns()
        if self._choice is None or (self._work is not None and not self._work.done()):
            return
        if now_ns - self._asked_ns >= AGAIN_NS or self._kept[1] != self._changes:
            self._asked_ns = now_ns
            self._work = self._pool.submit(self._measure, self._choice, self._changes, now_ns)

    def forget(self) -> None:
        """The cluster has changed: what was measured says nothing any more."""
        self._changes += 1

    def of(self, targets: Sequence[Target]) -> Baselines:
        """The baselines of these targets: those taken ahead, or measured now."""
        measured_ns, changes, kept = self._kept
        age_ns = self._cluster.clock.now_ns() - measured_ns
        known = kept if changes == self._changes and age_ns <= STALE_NS else {}
        missing = [target for target in targets if target.name not in known]
        now = baselines_of(self._fault, self._cluster, missing) if missing else {}
        return {target.name: {**known, **now}[target.name] for target in targets}

    def _measure(self, choice: TargetChoice, changes: int, now_ns: int) -> None:
        """What fails here is measured at the strike, where its failure is told."""
        try:
            targets = resolve(choice, self._cluster, random.Random(0))
            if len(targets) <= MOST:
                found = baselines_of(self._fault, self._cluster, targets)
                self._kept = (now_ns, changes, found)
        except Exception:  # noqa: BLE001 - whatever a fault raises, it is asked again when it strikes
            return


def measures(fault: Fault) -> bool:
    """Whether the fault measures anything before it strikes."""
    return type(fault).baseline is not Fault.baseline


def widest(choice: TargetChoice) -> TargetChoice | None:
    """A choice of everything that this one may come to mean; None where that is told only by the
    system itself, at the strike."""
    if choice.how == "the":
        return None
    if choice.how == "one of":
        return replace(choice, how="all of")
    ends = tuple(widest(end) for end in choice.ends)
    found = tuple(end for end in ends if end is not None)
    return replace(choice, ends=found) if len(found) == len(ends) else None
