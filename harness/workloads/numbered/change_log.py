"""The changes of a load so far, and the acknowledged records between each two of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from streamquake.harness.workloads.numbered.delivery_counts import (
    DeliveryCounts,
    DeliveryReport,
    figures,
)
from streamquake.harness.workloads.numbered.records import LoadDefinition
from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange, in_force

RATE_OVER_NS = 3 * 10**9
"""The rate is measured over at most this long, so that an old stall does not lower it."""


@dataclass(frozen=True, kw_only=True)
class ChangeInterval:
    """The records between two workload changes."""

    active: Collection[str]
    began_ns: int
    reads: bool
    tally: DeliveryCounts = field(default_factory=DeliveryCounts)


class WorkloadChangeLog:
    """Owned by the thread that sends; other threads may read."""

    def __init__(
        self, recipe_of: Callable[[Sequence[ScheduledChange]], LoadDefinition], now_ns: int
    ) -> None:
        self._recipe_of = recipe_of
        self._scheduled_changes: tuple[ScheduledChange, ...] = ()
        self._acknowledged = 0
        self._marks: deque[tuple[int, int]] = deque([(now_ns, 0)], maxlen=16)
        self.recipe = recipe_of(())
        self._intervals = [ChangeInterval(active=(), began_ns=now_ns, reads=False)]

    @property
    def current_interval(self) -> ChangeInterval:
        """The interval of the records that are sent now."""
        return self._intervals[-1]

    def apply_change(self, change: ScheduledChange, now_ns: int) -> bool:
        """Apply a workload change; False when it changes nothing. Raises ValueError for an unknown
        one."""
        if change.parameters is None and change.disturbance not in self.current_interval.active:
            return False
        changes = (*self._scheduled_changes, change)
        self.recipe = self._recipe_of(changes)
        self._scheduled_changes = changes
        active = in_force(changes, change.at_record)
        reads = any(started.change.seen_inside for started in active.values())
        self._intervals.append(ChangeInterval(active=tuple(active), began_ns=now_ns, reads=reads))
        self.mark(now_ns)
        return True

    def factor(self) -> float:
        """The present multiple of the load's own rate."""
        active = in_force(self._scheduled_changes, self.recipe.records)
        return math.prod(change.change.rate_factor for change in active.values())

    def acknowledged(self, index: int, interval: ChangeInterval, record: DeliveryReport) -> None:
        """Count an acknowledged record of an interval."""
        self._acknowledged += 1
        interval.tally.add(record)
        if interval.reads:
            interval.tally.read(record, self.recipe.event_time_ms(index))

    def mark(self, now_ns: int) -> None:
        """Store how many were acknowledged by now; called a few times per second, for the rate."""
        self._marks.append((now_ns, self._acknowledged))

    def sent_under(self, disturbance: str, now_ns: int) -> dict[str, Any]:
        """The figures of the records acknowledged since the disturbance last began or ended."""
        intervals = self._intervals.copy()
        active = disturbance in intervals[-1].active
        same = list(takewhile(lambda s: (disturbance in s.active) == active, reversed(intervals)))
        began_ns = same[-1].began_ns
        return {
            "active": active,
            "watched_s": round((now_ns - began_ns) / 1e9, 3),
            "records_per_s": round(self._rate_since(began_ns, now_ns), 1),
            **figures(interval.tally for interval in same),
        }

    def _rate_since(self, began_ns: int, now_ns: int) -> float:
        since_ns = max(began_ns, now_ns - RATE_OVER_NS)
        at_ns, before = next(
            (mark for mark in self._marks.copy() if mark[0] >= since_ns), (now_ns, 0)
        )
        return (self._acknowledged - before) / ((now_ns - at_ns) / 1e9) if now_ns > at_ns else 0.0
