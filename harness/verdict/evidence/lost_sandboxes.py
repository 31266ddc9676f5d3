"""Sandboxes that ended by themselves: their nodes lost the network without a fault."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.faults.fault import faults
from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import SandboxDied


def lost_sandboxes(history: History) -> Iterator[SandboxDied]:
    """The ends of sandboxes that no fault caused. A node that got its network back had lost it, so
    a later start changes nothing."""
    ending = [
        window
        for window in fault_windows(history)
        if window.fault in faults and faults[window.fault].ends_sandbox
    ]
    yield from (
        event
        for event in history.of(SandboxDied)
        if not any(
            event.node in window.nodes and window.was_under_way(event.at_s) for window in ending
        )
    )
