"""Subtasks that acknowledged checkpoints long before the record has them running.

Only a running task acknowledges a checkpoint. A `RUNNING` that is recorded late would lengthen the
time of a failover, in which records may be lost, and hide how long it took.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.harness.verdict.evidence.attempt_contradictions import (
    SAME_POLL_NS,
    Place,
    attempts_of,
)
from streamquake.harness.verdict.evidence.engine_clock import clock_moved
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History

RUNNING = "RUNNING"


def running_after_acknowledgement(history: History) -> Iterator[str]:
    """A message for each attempt that is recorded as running much later than a checkpoint that it
    acknowledged. The stamps show nothing where a fault moved the clocks."""
    if clock_moved(history):
        return
    acknowledged = _acknowledged(history)
    for place, events in attempts_of(history).items():
        for event in (each for each in events if each.state == RUNNING):
            before = (
                checkpoint
                for checkpoint, ack_ms in acknowledged.get(place, ())
                if 0 < (event.start_ms or 0) < ack_ms
                and checkpoint.at_ns + SAME_POLL_NS < event.at_ns
            )
            if (first := next(before, None)) is not None:
                yield (
                    f"{event.name} ({event.subtask}) is recorded as running at "
                    f"{event.at_s:,.1f} s, but its attempt {event.attempt} acknowledged "
                    f"checkpoint {first.checkpoint}, which was complete at {first.at_s:,.1f} s"
                )


def _acknowledged(history: History) -> dict[Place, list[tuple[CheckpointCompleted, float]]]:
    """The checkpoints that each subtask acknowledged, with the stamp of that."""
    found: dict[Place, list[tuple[CheckpointCompleted, float]]] = {}
    for checkpoint in history.of(CheckpointCompleted):
        for each in checkpoint.subtasks or ():
            place = (checkpoint.job, each.get("vertex", ""), each.get("subtask", -1))
            found.setdefault(place, []).append((checkpoint, each.get("ack_ms") or -1))
    return found
