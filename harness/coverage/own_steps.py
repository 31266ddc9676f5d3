"""The faults that act at a step of the protocol themselves: their effect proves the phase."""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.faults.fault import Fault
from streamquake.reports.coverage.cell import Phase, Place

PHASES: Mapping[str, Phase] = {
    "checkpoint": Phase.BARRIER,
    "precommit": Phase.BARRIER,
    "commit": Phase.COMMIT,
    "restore": Phase.RESTORE,
    "job": Phase.RESTART,
    "parallelism": Phase.RESCALE,
    "savepoint": Phase.SAVEPOINT,
}
"""What a fault touches -> the phase in which it acts."""
PLACES: Mapping[str, Place] = {"precommit": Place.SINK, "commit": Place.SINK}
"""What a fault touches -> the only part of the pipeline that has the step."""


def own_phase(fault: type[Fault] | None) -> Phase | None:
    """The phase in which a fault acts, whenever it is injected; None for one that may act in
    any."""
    return None if fault is None else PHASES.get(fault.touches)


def own_place(fault: type[Fault] | None) -> Place | None:
    """The only part of the pipeline in which a fault acts; None where its target decides."""
    return None if fault is None else PLACES.get(fault.touches)
