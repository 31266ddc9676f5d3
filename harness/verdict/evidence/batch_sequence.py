"""The micro-batches of a query in their order, and what in it cannot be true.

A query numbers its batches without a gap. Only the batch that a restart repeats may be missing from
the reports: the driver that ran it again may have been restored before it reported one. After a
query has ended over a batch, another driver runs, or the query is gone.

A restored query goes on after a batch that had completed, and that was the last one with a known
commit. With progress tracked beside the batches, more of them had completed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from streamquake.harness.verdict.evidence.checkpoints import Checkpoint, checkpoints_of
from streamquake.reports.record.checkpoint_events import (
    CheckpointCompleted,
    CheckpointEnd,
    CheckpointTriggered,
    CommitWritten,
    checkpoint_number,
)
from streamquake.reports.record.event import MICRO_BATCH
from streamquake.reports.record.event_field import MissingField
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRestored
from streamquake.reports.record.run_events import RunDrained


def contradicted_batches(history: History) -> Iterator[str]:
    """A message for each contradiction in the batches of a query, or between them and the drain."""
    try:
        batches = _batches(history)
    except MissingField as missing:
        yield str(missing)
        return
    for job in dict.fromkeys(each.job for each in batches):
        of_query = [each for each in batches if each.job == job]
        restored_s = [event.at_s for event in history.of(JobRestored) if event.job == job]
        yield from _gaps(of_query, restored_s)
        yield from _repeats(history, job)
        yield from _ended_over(of_query[-1], restored_s)
    if (drained := history.first(RunDrained)) is not None:
        yield from _after_drain(batches, drained.at_s)


def _batches(history: History) -> list[Checkpoint]:
    """The batches, in order of their begins. Raises MissingField for one without a
    field."""
    events = history.of(CheckpointTriggered, CheckpointEnd)
    # A damaged record of other checkpoints is of no concern here.
    if not any(event.type == MICRO_BATCH for event in events):
        return []
    return [each for each in checkpoints_of(history) if each.micro_batch]


def _gaps(batches: Sequence[Checkpoint], restored_s: Sequence[float]) -> Iterator[str]:
    """Batches that are missing between two that follow each other."""
    completed = [each for each in batches if each.completed]
    for before, after in pairwise(completed):
        missing = after.number - before.number - 1
        began_s, ended_s = before.ended_s or 0.0, after.ended_s or 0.0
        if missing > sum(began_s <= at_s <= ended_s for at_s in restored_s):
            yield (
                f"batch {before.number} of the query is followed by batch {after.number}, and "
                "those between them are not recorded to complete"
            )


def _repeats(history: History, job: str | None) -> Iterator[str]:
    """Batches that complete twice in one driver, and drivers that are restored from another batch
    than the last one, or that go back behind it."""
    known, committed, restored = set[int](), -1, -1
    of_driver = set[int]()
    for event in history.of(CheckpointCompleted, CommitWritten, JobRestored):
        if event.job != job:
            continue
        number = checkpoint_number(event)
        if number is None:
            continue
        if isinstance(event, CommitWritten):
            committed = number
        elif isinstance(event, JobRestored):
            if number < committed:
                yield f"the query was restored from batch {number} after the commit of {committed}"
            if number >= 0 and number not in known:
                yield f"the query was restored from batch {number}, which had not completed"
            restored, committed, of_driver = number, number, set()
        else:
            if number in of_driver:
                yield f"batch {number} completed twice, and the query was not restored in between"
            if number <= restored:
                yield f"the query was restored from batch {restored}, and completed {number} again"
            known.add(number)
            of_driver.add(number)


def _ended_over(last: Checkpoint, restored_s: Sequence[float]) -> Iterator[str]:
    """The query ended over its last recorded batch, and was not restored after it."""
    if last.ended_query and not any(at_s >= (last.ended_s or 0.0) for at_s in restored_s):
        yield f"the query ended over {last.where}, and is not recorded to run again"


def _after_drain(batches: Sequence[Checkpoint], drained_s: float) -> Iterator[str]:
    """The first batch with records after everything had been read and committed."""
    for each in batches:
        if each.batch is not None and each.batch.rows and each.batch.ended_s > drained_s:
            yield f"{each.where} completed with records after the drain"
            break
