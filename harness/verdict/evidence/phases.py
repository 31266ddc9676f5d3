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
READ = "read"
"""The outputs are read in this phase, up to ends that are asked for in it."""
TEAR_DOWN = "tear down"
"""It begins when the outputs have been read."""
AFTER_LOAD = ("drain", READ, TEAR_DOWN, "commands")
"""The phases from the end of the load on; programs that judge a run are started in the last one."""


def phase_began(history: History, phase: str) -> PhaseBegan | None:
    """The start of a phase; None where it is not recorded."""
    return next((event for event in history.of(PhaseBegan) if event.phase == phase), None)
