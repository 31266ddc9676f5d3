"""Micro-batches that completed although no attempt of their tasks succeeded.

A batch that has read rows had tasks that read them. Spark drops events of tasks when its listeners
are too slow, so only a batch of which no successful attempt is recorded, and others are, counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.harness.verdict.evidence.attempts import DONE
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskAttempt


def completed_without_tasks(history: History) -> Iterator[str]:
    """A message for each batch that read rows, and of whose recorded attempts none succeeded, by
    any driver."""
    attempts = [event for event in history.of(TaskAttempt) if "state" in event.value]
    attempted = {(event.job, event.batch) for event in attempts}
    succeeded = {(event.job, event.batch) for event in attempts if event.state == DONE}
    for event in history.of(CheckpointCompleted):
        key = (event.job, event.checkpoint)
        if event.is_micro_batch and event.input_rows and key in attempted - succeeded:
            yield (
                f"batch {event.checkpoint} completed with {event.input_rows:,} rows, and no "
                "attempt of its tasks is recorded to have succeeded"
            )
