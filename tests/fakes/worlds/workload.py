"""The load of a fake cluster: numbered records that a fake broker acknowledges as time passes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.clock import Clock
from streamquake.harness.experiment.workload import WorkloadFinished
from streamquake.harness.workloads.numbered import Numbered
from streamquake.harness.workloads.numbered.change_log import WorkloadChangeLog
from streamquake.harness.workloads.numbered.records import Record
from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange
from streamquake.harness.workloads.sending.pace import EvenPace

MARK_NS = 300_000_000
AGE_NS = 10**9
"""The age of the load at the first query, nanoseconds."""


class AcknowledgedMessage:
    """A record as the client library returns it after its acknowledgement."""

    def __init__(self, record: Record) -> None:
        self._key, self._value = record.key.encode(), record.value()

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return self._value

    def __len__(self) -> int:
        return len(self._value)


class FakeLoad:
    """A `Steering` without a thread: at every query it sends the records that are due.

    `accepts_per_s` is the highest rate that its broker accepts; with `ignores_changes` it accepts
    changes and does not apply them.
    """

    def __init__(self, clock: Clock, workload: Numbered) -> None:
        self.accepts_per_s = 1_000_000
        self.ignores_changes = False
        self._clock = clock
        self._workload = workload
        self._began_ns = clock.now_ns()
        self._sent_until_ns = self._began_ns
        self._change_log = WorkloadChangeLog(partial(workload.load_definition, 1), self._began_ns)
        self._pace = EvenPace(workload.rate_per_s, self._began_ns)
        self._next = 0

    @property
    def finished(self) -> bool:
        return self._next >= self._workload.records

    def steer(self, disturbance: str, parameters: Mapping[str, Any]) -> int:
        ScheduledChange(0, disturbance, parameters).build_fault()
        self._send_due()
        if self.finished:
            raise WorkloadFinished("the workload had sent all of its records")
        return self._apply(ScheduledChange(self._next, disturbance, parameters))

    def settle(self, disturbance: str) -> int:
        self._send_due()
        return self._apply(ScheduledChange(self._next, disturbance, None))

    def sent_under(self, disturbance: str) -> Mapping[str, Any]:
        self._send_due()
        figures = self._change_log.sent_under(disturbance, self._now_ns())
        return {
            **figures,
            "active": figures["active"] and not self.finished,
            "finished": self.finished,
        }

    def _apply(self, change: ScheduledChange) -> int:
        now_ns = self._now_ns()
        if not self.ignores_changes and self._change_log.apply_change(change, now_ns):
            rate_per_s = self._workload.rate_per_s * self._change_log.factor()
            self._pace.change(min(rate_per_s, self.accepts_per_s), self._next, now_ns)
        return self._next

    def _now_ns(self) -> int:
        return self._clock.now_ns() + AGE_NS

    def _send_due(self) -> None:
        while self._sent_until_ns < self._now_ns():
            self._sent_until_ns = min(self._sent_until_ns + MARK_NS, self._now_ns())
            due = min(self._pace.due(self._sent_until_ns), self._workload.records)
            for record in self._change_log.definition.between(self._next, due):
                self._change_log.acknowledged(
                    record.index, self._change_log.current_interval, AcknowledgedMessage(record)
                )
            self._next = max(self._next, due)
            self._change_log.mark(self._sent_until_ns)


def install(cluster: Cluster) -> None:
    workload = Numbered(records=100_000, rate_per_s=500, keys=16)
    cluster.run.steering = FakeLoad(cluster.clock, workload)
