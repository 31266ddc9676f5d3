"""Whether a fault disturbed the system's traffic or work, or only the harness's probe.

The harness's own probe verifies a partition, a limit or a reset. On an idle link or node only the
probe was affected, and a held check proves nothing.
"""

from __future__ import annotations

from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, SYSTEM
from streamquake.reports.record.fault_events import (
    FaultCalled,
    FaultEndedEarly,
    FaultEvent,
    FaultInEffect,
    FaultStillInEffect,
)
from streamquake.reports.record.history import History

EVIDENCE_EVENTS = (FaultInEffect, FaultStillInEffect, FaultEndedEarly)


def targets_of_probe_alone(history: History, step: int) -> tuple[str, ...]:
    """The targets of a step's newest attempt on which, by every sample, only the probe was
    affected."""
    disturbed_by: dict[str, set[str]] = {}
    for event in history.of(FaultEvent):
        if event.step != step:
            continue
        if isinstance(event, FaultCalled):
            disturbed_by = {}
        evidence = event.evidence if isinstance(event, EVIDENCE_EVENTS) else None
        for target, sample in (evidence or {}).items():
            if isinstance(sample, dict) and DISTURBED in sample:
                disturbed_by.setdefault(target, set()).add(sample[DISTURBED])
    return tuple(
        target
        for target, disturbed in disturbed_by.items()
        if PROBE_ALONE in disturbed and SYSTEM not in disturbed
    )
