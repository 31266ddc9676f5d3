"""Faults that silenced their nodes for so short a time that the engine need not notice them.

A process that is frozen or cut off closes no connection. Its engine regards it as lost when it has
been silent for some time (Flink: `heartbeat.timeout`); one that is back before that goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from streamquake.cluster.engines.flink.config import lost_after_s
from streamquake.harness.verdict.evidence.affected_subtasks import only_silences
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.fault_windows import acted_windows
from streamquake.reports.record.history import History
from streamquake.topologies.model import Topology


@dataclass(frozen=True, kw_only=True)
class BriefSilence:
    """A fault that may not have been noticed, how long it acted, and from when on an engine must
    notice it, in seconds."""

    fault: FaultInEffect
    acted_s: float
    lost_after_s: float


def brief_silences(
    injected: Iterable[FaultInEffect], history: History, topology: Topology
) -> Iterator[BriefSilence]:
    """Those of the faults that the engine need not have noticed. A fault that ended early acted
    until it was last verified."""
    limits = (
        lost_after_s(topology, name)
        for name, service in topology.services.items()
        if service.engine == "flink"
    )
    limit_s = max(limits, default=inf)
    windows = {(window.step, window.in_effect_s): window for window in acted_windows(history)}
    for fault in filter(only_silences, injected):
        window = windows.get((fault.step, fault.moment_ns / 1e9))
        if window is None or window.proven_until_s is None:
            continue
        acted_s = window.proven_until_s - window.called_s
        if acted_s < limit_s:
            yield BriefSilence(fault=fault, acted_s=acted_s, lost_after_s=limit_s)
