"""Whether a fault explains what happened to a node."""

from __future__ import annotations

from typing import Literal

from streamquake.faults.fault import faults
from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import NodeEvent

Ended = Literal["ends_process", "ends_sandbox"]
"""What a fault ends of its nodes."""


def ended_by_fault(ended: Ended, event: NodeEvent, history: History) -> bool:
    """Whether a fault that ends such a part of its nodes was under way on the node of an event."""
    return any(
        window.fault in faults
        and getattr(faults[window.fault], ended)
        and event.node in window.nodes
        and window.was_under_way(event.at_s)
        for window in fault_windows(history)
    )
