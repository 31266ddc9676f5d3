"""Micro-batches that completed although their tasks, or one of them, only failed.

A batch that has read rows had tasks that read them. Spark drops events of tasks when its listeners
are too slow, so only a batch of which no successful attempt is recorded, and others are, counts. Of
a single partition the successful attempt is missing only where all others have theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from streamquake.harness.verdict.evidence.attempts import DONE
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskAttempt

FAILED = "FAILED"
"""The state of an attempt that failed. One that was ended for another reason is no failure."""


def completed_without_tasks(history: History) -> Iterator[str]:
    """A message for each batch that read rows, and of whose recorded attempts, or of those of one
    of its partitions, none succeeded, by any driver."""
    attempts = [event for event in history.of(TaskAttempt) if "state" in event.value]
    attempted = {(event.job, event.batch) for event in attempts}
    succeeded = {(event.job, event.batch) for event in attempts if event.state == DONE}
    partitions = _partitions(attempts)
    for event in history.of(CheckpointCompleted):
        key = (event.job, event.checkpoint)
        if not event.is_micro_batch or not event.input_rows:
            continue
        if key in attempted - succeeded:
            yield _message(event, "its tasks")
        elif (failed := _only_failed(partitions.get(key, {}))) is not None:
            yield _message(event, f"its partition {failed}")


def _message(batch: CheckpointCompleted, what: str) -> str:
    return (
        f"batch {batch.checkpoint} completed with {batch.input_rows:,} rows, and no attempt of "
        f"{what} is recorded to have succeeded"
    )


def _partitions(
    attempts: Iterable[TaskAttempt],
) -> dict[tuple[str | None, int | None], dict[int, set[str]]]:
    """Job and batch -> partition -> the states in which its attempts ended. Old records have no
    partitions."""
    states: dict[tuple[str | None, int | None], dict[int, set[str]]] = {}
    for event in attempts:
        if event.partition is not None:
            of_batch = states.setdefault((event.job, event.batch), {})
            of_batch.setdefault(event.partition, set()).add(event.state)
    return states


def _only_failed(partitions: Mapping[int, Set[str]]) -> int | None:
    """The only partition without a successful attempt, if some attempt of it failed; None where
    each has one, or where more attempts are not recorded."""
    missing = [number for number, states in partitions.items() if DONE not in states]
    if len(missing) != 1 or FAILED not in partitions[missing[0]]:
        return None
    return missing[0] if set(partitions) == set(range(len(partitions))) else None
