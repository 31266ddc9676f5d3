"""The parts of the pipeline whose tasks ran on a node of a query at a moment."""

from __future__ import annotations

from collections.abc import Collection

from streamquake.harness.coverage.places import TASKS
from streamquake.harness.verdict.evidence.engine_clock import STAMP_NS, EngineClock
from streamquake.reports.coverage.cell import Place
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskAttempt


def places_of_batch_tasks(
    nodes: Collection[str], history: History, called_ns: int
) -> frozenset[Place]:
    """The first stage of a batch reads, the later ones run the operators and the sink; the only
    stage of a batch does everything. Empty where no recorded attempt ran on the nodes when the
    injection was called."""
    clock = EngineClock(history)
    attempts = history.of(TaskAttempt)
    running = [
        attempt
        for attempt in attempts
        if attempt.node in nodes
        and clock.stamped_ns(attempt, attempt.start_ms) + STAMP_NS <= called_ns
        and called_ns <= clock.stamped_ns(attempt, attempt.end_ms)
    ]
    found: set[Place] = set()
    for attempt in running:
        stages = {each.stage for each in attempts if each.batch == attempt.batch}
        if len(stages) == 1:
            found |= TASKS
        else:
            reads = attempt.stage == min(stages)
            found |= {Place.SOURCE} if reads else TASKS - {Place.SOURCE}
    return frozenset(found)
