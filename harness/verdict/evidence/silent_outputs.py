"""Outputs that came until a fault and never again, while others of the same job did.

An output may be rare by its nature, or depend on the data: asked is only of those that came often
and until the fault, of loads that no fault steers, and by the pauses that they had before.
"""

from __future__ import annotations

from itertools import pairwise

from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import OutputSeen, RecordsSent

OFTEN = 5
"""An output that grew less often before the fault says nothing about its pauses."""
PAUSES, LEAST_NS = 3, 10 * 10**9
"""It is silent after so many of its longest pauses from before, and this time at least."""


def grew(event: OutputSeen) -> bool:
    """Whether an observation of an output shows records; older histories do not record how many."""
    return event.grown is None or event.grown > 0


def silent_outputs(history: History, called_ns: int, back_ns: int) -> tuple[str, ...]:
    """The outputs of which nothing came since the system was back, for so long as records were
    sent, though they came until the fault was called; moments on the run's clock."""
    if any(window.target == "the workload" for window in fault_windows(history)):
        return ()
    loaded_ns = max((event.at_ns for event in history.of(RecordsSent)), default=0) - back_ns
    seen: dict[str, list[int]] = {}
    for event in filter(grew, history.of(OutputSeen)):
        seen.setdefault(event.output, []).append(event.at_ns)
    return tuple(
        name for name, moments in seen.items() if _is_silent(moments, called_ns, back_ns, loaded_ns)
    )


def _is_silent(moments: list[int], called_ns: int, back_ns: int, loaded_ns: int) -> bool:
    before = [moment for moment in moments if moment <= called_ns]
    if len(before) < OFTEN or moments[-1] >= back_ns:
        return False
    pause_ns = max(later - earlier for earlier, later in pairwise(before))
    came_until_the_fault = called_ns - before[-1] <= 2 * pause_ns
    return came_until_the_fault and loaded_ns >= max(LEAST_NS, PAUSES * pause_ns)
