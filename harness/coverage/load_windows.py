"""The beginning and the end of the load, by the run's own clock."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.harness.coverage.phase_window import Moment, PhaseWindow
from streamquake.harness.verdict.evidence.phases import DISTURB, STEADY, phase_began
from streamquake.reports.coverage.cell import CheckpointKind, Phase
from streamquake.reports.record.event import Event
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import RunDrained, WorkloadDone


def load_windows(history: History) -> Iterator[PhaseWindow]:
    """From the begin of the load to steady state, and from its end until all of it is committed."""
    steady, disturb = phase_began(history, STEADY), phase_began(history, DISTURB)
    if steady is not None:
        yield _window(Phase.LOAD_BEGIN, steady, disturb)
    done = history.first(WorkloadDone)
    if done is not None:
        yield _window(Phase.LOAD_END, done, history.first(RunDrained, after_ns=done.at_ns))


def _window(phase: Phase, begin: Event, end: Event | None) -> PhaseWindow:
    return PhaseWindow(
        phase=phase,
        kind=CheckpointKind.NONE,
        begin=Moment.exact(begin.at_ns),
        end=Moment.unproven() if end is None else Moment.exact(end.at_ns),
    )
