"""Whose traffic or work a fault disturbed: the system's, or that of the harness's probe alone.

A cut, a limit or a reset is shown by attempts of the harness's own. On a link or a node that the
system left idle they are all that suffered, and what holds then proves nothing.
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

SHOWING = (FaultInEffect, FaultStillInEffect, FaultEndedEarly)


def probe_alone(history: History, step: int) -> tuple[str, ...]:
    """The targets of a step's newest try on which, by every look, only the probe suffered."""
    message: dict[str, set[str]] = {}
    for event in history.of(FaultEvent):
        if event.step != step:
            continue
        if isinstance(event, FaultCalled):
            message = {}
        shown = event.evidence if isinstance(event, SHOWING) else None
        for target, seen in (shown or {}).items():
            if isinstance(seen, dict) and DISTURBED in seen:
                message.setdefault(target, set()).add(seen[DISTURBED])
    return tuple(
        target for target, whose in message.items() if PROBE_ALONE in whose and SYSTEM not in whose
    )
