"""When the phases of a run began."""

from __future__ import annotations

from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import PhaseBegan

STEADY = "steady"
"""It begins right before the load."""
DISTURB = "disturb"
"""It begins with the steady state, also in a run without faults; triggers count from it."""
HEAL = "heal"
"""Faults without a duration are healed in this phase."""


def phase_began(history: History, phase: str) -> PhaseBegan | None:
    """The start of a phase; None where it is not recorded."""
    return next((event for event in history.of(PhaseBegan) if event.phase == phase), None)
