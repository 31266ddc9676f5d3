"""The changes of a load so far, and counts of the records acknowledged between them."""

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
from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange, active_changes

RATE_OVER_NS = 3 * 10**9
"""The rate is the mean over at most this time, so that an earlier stall does not lower it."""


@dataclass(frozen=True, kw_only=True)
class ChangeInterval:
    """The records between two workload changes. `active` names the disturbances; with
    `inspects_content` the values of the records are parsed too."""

    active: Collection[str]
    began_ns: int
    inspects_content: bool
    counts: DeliveryCounts = field(default_factory=DeliveryCounts)


class WorkloadChangeLog:
    """The changes of a load. Owned by the thread that sends; other threads may read."""

    def __init__(
        self, definition_of: Callable[[Sequence[ScheduledChange]], LoadDefinition], now_ns: int
    ) -> None:
        self._definition_of = definition_of
        self._scheduled_changes: tuple[ScheduledChange, ...] = ()
        self._acknowledged = 0
        self._marks: deque[tuple[int, int]] = deque([(now_ns, 0)], maxlen=16)
        self.definition = definition_of(())
        self._intervals = [ChangeInterval(active=(), began_ns=now_ns, inspects_content=False)]

    @property
    def current_interval(self) -> ChangeInterval:
        """The interval of the records that are sent now."""
        return self._intervals[-1]

    def apply_change(self, change: ScheduledChange, now_ns: int) -> bool:
        """Apply a workload change; False if it ends a disturbance that is not active. Raises
        ValueError for an unknown disturbance."""
        if change.parameters is None and change.disturbance not in self.current_interval.active:
            return False
        changes = (*self._scheduled_changes, change)
        self.definition = self._definition_of(changes)
        self._scheduled_changes = changes
        active = active_changes(changes, change.at_record)
        inspects_content = any(newest.change.changes_only_content for newest in active.values())
        self._intervals.append(
            ChangeInterval(active=tuple(active), began_ns=now_ns, inspects_content=inspects_content)
        )
        self.mark(now_ns)
        return True

    def factor(self) -> float:
        """The current rate as a multiple of the load's own rate."""
        active = active_changes(self._scheduled_changes, self.definition.records)
        return math.prod(change.change.rate_factor for change in active.values())

    def acknowledged(self, index: int, interval: ChangeInterval, record: DeliveryReport) -> None:
        """Count an acknowledged record of an interval."""
        self._acknowledged += 1
        interval.counts.add(record)
        if interval.inspects_content:
            interval.counts.inspect(record, self.definition.event_time_ms(index))

    def mark(self, now_ns: int) -> None:
        """Store the number of acknowledged records; called a few times per second, for the rate."""
        self._marks.append((now_ns, self._acknowledged))

    def sent_under(self, disturbance: str, now_ns: int) -> dict[str, Any]:
        """The figures of the records acknowledged since the disturbance last began or ended."""
        intervals = self._intervals.copy()
        active = disturbance in intervals[-1].active
        newest_first = takewhile(lambda i: (disturbance in i.active) == active, reversed(intervals))
        same = list(newest_first)
        began_ns = same[-1].began_ns
        return {
            "active": active,
            "watched_s": round((now_ns - began_ns) / 1e9, 3),
            "records_per_s": round(self._rate_since(began_ns, now_ns), 1),
            **figures(interval.counts for interval in same),
        }

    def _rate_since(self, began_ns: int, now_ns: int) -> float:
        since_ns = max(began_ns, now_ns - RATE_OVER_NS)
        at_ns, before = next(
            (mark for mark in self._marks.copy() if mark[0] >= since_ns), (now_ns, 0)
        )
        return (self._acknowledged - before) / ((now_ns - at_ns) / 1e9) if now_ns > at_ns else 0.0
