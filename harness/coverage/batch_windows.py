"""The phases of the micro-batches of a history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamquake.harness.coverage.phase_window import Moment, PhaseWindow
from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.harness.verdict.evidence.restores import is_failure
from streamquake.reports.coverage.cell import CheckpointKind, Phase
from streamquake.reports.record.checkpoint_events import (
    BatchRunning,
    BatchStep,
    CommitWritten,
    OffsetWritten,
    SinkWritten,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import FAILURES, JobEnded, JobEvent

BEGINS: Mapping[type[JobEvent], Phase] = {
    OffsetWritten: Phase.PLANNED,
    BatchRunning: Phase.RUNNING,
    SinkWritten: Phase.SINK_WRITTEN,
    CommitWritten: Phase.COMMITTED,
}
"""Step -> the phase that it begins."""
FOLLOWS: Mapping[Phase, tuple[Phase, int]] = {
    Phase.PLANNED: (Phase.RUNNING, 0),
    Phase.RUNNING: (Phase.SINK_WRITTEN, 0),
    Phase.SINK_WRITTEN: (Phase.COMMITTED, 0),
    Phase.COMMITTED: (Phase.PLANNED, 1),
}
"""Phase -> the next one, and by how much the number of the batch is greater then."""


def batch_windows(history: History) -> Iterator[PhaseWindow]:
    """The phases of every micro-batch, each until the step that begins the next one."""
    clock = EngineClock(history)
    events = sorted(history.of(BatchStep, *FAILURES, JobEnded), key=clock.moment_ns)
    for job in dict.fromkeys(event.job for event in history.of(BatchStep)):
        current: BatchStep | None = None
        for event in (each for each in events if each.job == job):
            if current is not None:
                yield _window(current, event, clock)
            current = event if isinstance(event, BatchStep) else None
        if current is not None:
            yield _window(current, None, clock)


def _window(begin: BatchStep, end: JobEvent | None, clock: EngineClock) -> PhaseWindow:
    phase = BEGINS[type(begin)]
    return PhaseWindow(
        phase=phase,
        kind=CheckpointKind.BATCH,
        begin=Moment.stamped(clock.moment_ns(begin), begin.at_ns),
        end=_end_of(phase, begin, end, clock),
        ends_with_failure=end is not None and not isinstance(end, BatchStep) and is_failure(end),
        job=begin.job,
        checkpoint=begin.checkpoint,
    )


def _end_of(phase: Phase, begin: BatchStep, end: JobEvent | None, clock: EngineClock) -> Moment:
    """The moment of the event that ends a phase. Where that is not the next step of the protocol, a
    step is missing in the record, and the phase may have ended before."""
    if end is None:
        return Moment.unproven()
    at_ns = clock.moment_ns(end)
    if not isinstance(end, BatchStep):
        return Moment.failed(at_ns)
    if (BEGINS[type(end)], end.checkpoint - begin.checkpoint) != FOLLOWS[phase]:
        return Moment.unproven(Moment.stamped(at_ns).latest_ns)
    return Moment.stamped(at_ns, end.at_ns)
