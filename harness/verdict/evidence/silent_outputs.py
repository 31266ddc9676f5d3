"""Outputs that were active until a fault and are silent since, while the job's other outputs
continue.

An output may be rare by its nature, or depend on the data. So only outputs count that grew often
and until the fault, under a load that no fault changes, and their own earlier pauses set the limit.
"""

from __future__ import annotations

from itertools import pairwise

from streamquake.harness.verdict.evidence.sent_times import load_ended_ns
from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import OutputSeen, RunDrained

LEAST_BEFORE = 5
"""An output that grew less often before the fault has no known usual pause."""
LEAST_ENDED = 2
"""The same for an output that never grew after the effect, not even when the run drained."""
PAUSES, LEAST_NS = 3, 10 * 10**9
"""An output is silent after so many of its longest earlier pauses, and at least this time."""


def has_grown(event: OutputSeen) -> bool:
    """Whether an observation of an output shows new records; older histories do not record how
    many."""
    return event.grown is None or event.grown > 0


def silent_outputs(
    history: History, called_ns: int, effect_ns: int, back_ns: int
) -> tuple[str, ...]:
    """The outputs that grew until the fault was called and not since the system was back, although
    records were sent for long enough since then; or not since the effect, although records were
    sent for long enough since that, and the run drained. Moments on the run's clock."""
    if any(window.target == "the workload" for window in fault_windows(history)):
        return ()
    loaded_ns = load_ended_ns(history) or 0
    drained = history.first(RunDrained) is not None
    moments_of: dict[str, list[int]] = {}
    for event in filter(has_grown, history.of(OutputSeen)):
        moments_of.setdefault(event.output, []).append(event.at_ns)
    return tuple(
        name
        for name, moments in moments_of.items()
        if _is_silent(moments, called_ns, back_ns, loaded_ns, LEAST_BEFORE)
        or (drained and _is_silent(moments, effect_ns, effect_ns, loaded_ns, LEAST_ENDED))
    )


def _is_silent(
    moments: list[int], called_ns: int, back_ns: int, loaded_ns: int, least_before: int
) -> bool:
    before = [moment for moment in moments if moment <= called_ns]
    if len(before) < least_before or moments[-1] >= back_ns:
        return False
    pause_ns = max(later - earlier for earlier, later in pairwise(before))
    active_until_fault = called_ns - before[-1] <= 2 * pause_ns
    return active_until_fault and loaded_ns - back_ns >= max(LEAST_NS, PAUSES * pause_ns)
