"""Whether a fault took effect on the nodes for which it was called."""

from __future__ import annotations

from collections.abc import Iterable

from streamquake.reports.record.fault_events import FaultCalled, FaultInEffect
from streamquake.reports.record.history import History


def effect_elsewhere(
    faults: Iterable[FaultInEffect], history: History
) -> tuple[FaultInEffect, FaultCalled] | None:
    """The first fault whose effect is recorded on other nodes than its last call, with that call;
    None without one. Old records have no nodes."""
    for fault in faults:
        calls = [
            event
            for event in history.of(FaultCalled)
            if event.step == fault.step and event.at_ns <= fault.at_ns
        ]
        if not calls or calls[-1].nodes is None or fault.nodes is None:
            continue
        if set(calls[-1].nodes) != set(fault.nodes):
            return fault, calls[-1]
    return None
