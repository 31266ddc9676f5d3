"""Which tasks of micro-batches were run again after a failure, and why.

Tasks of a batch are short, so a failure shows in their attempts: one whose executor was
lost is repeated; one that had finished is repeated only where its shuffle output was lost with the
executor (its stage gets another attempt); a batch whose driver or query ended runs again whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from streamquake.reports.record.checkpoint_events import (
    CheckpointCompleted,
    CheckpointFailed,
    CheckpointTriggered,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskAttempt

Task = tuple[int | None, int, int]
"""Batch, stage and the number of a task in it."""
LOST = "ExecutorLostFailure"
UNFETCHED = ("FetchFailed", "Resubmitted")
"""How an attempt ends that could not fetch shuffle output, and one that had finished when the
output that it left was lost (`TaskEndReason`)."""
DONE = "SUCCESS"
"""The state of an attempt that did what it had to."""
KINDS = ("task", "region", "job")


@dataclass(frozen=True, kw_only=True)
class RepeatedTasks:
    """What was repeated after a moment."""

    hit: Mapping[Task, TaskAttempt]
    """Attempts that were lost with an executor of the affected nodes."""
    shuffle: Mapping[Task, TaskAttempt]
    """Repeated only since shuffle output was lost."""
    unexplained: Mapping[Task, TaskAttempt]
    """Attempts that failed in another way, on whichever node."""
    batches: tuple[int, ...]
    """Those that ran again whole."""
    tasks: int
    """All tasks of the batches that were touched."""
    unfinished: tuple[TaskAttempt, ...]
    """Attempts of `hit` whose task was not seen to succeed, nor their batch to complete or to run
    again whole."""
    unheard: tuple[TaskAttempt, ...]
    """Attempts that were not the first of their task, of which no earlier one was seen."""

    @property
    def kind(self) -> str | None:
        """The narrowest word for it: `task` where failed tasks alone were repeated, `region` where
        those too that had to make lost shuffle output again, `job` where a batch ran again whole;
        None where nothing was."""
        if self.batches:
            return "job"
        if self.shuffle:
            return "region"
        return "task" if self.hit or self.unexplained else None

    @property
    def count(self) -> int:
        return len({*self.hit, *self.shuffle, *self.unexplained})


def repeats_after(history: History, after_ns: int, nodes: Collection[str]) -> RepeatedTasks:
    """What of the batches was repeated since the moment of a fault on these nodes."""
    attempts = [e for e in history.of(TaskAttempt) if "batch" in e.value]
    ended = [event for event in attempts if event.at_ns >= after_ns]
    affected: dict[Task, TaskAttempt] = {}
    shuffle: dict[Task, TaskAttempt] = {}
    unexplained: dict[Task, TaskAttempt] = {}
    for event in ended:
        place, kind = _task(event), event.ended_by
        if kind == LOST and event.node in nodes:
            affected.setdefault(place, event)
        elif kind in UNFETCHED or event.stage_attempt > 0:
            shuffle.setdefault(place, event)
        elif event.state == "FAILED" or kind == LOST:
            unexplained.setdefault(place, event)
    shuffle = {place: event for place, event in shuffle.items() if place not in affected}
    batches = _run_again(history, after_ns)
    touched = {place[0] for place in (*affected, *shuffle, *unexplained)}
    return RepeatedTasks(
        hit=affected,
        shuffle=shuffle,
        unexplained=unexplained,
        batches=batches,
        tasks=len({_task(e) for e in ended if e.batch in touched}),
        unfinished=tuple(
            event
            for event in affected.values()
            if event.batch not in {*batches, *_completed(history, event.at_ns)}
            and not _done(event, attempts)
        ),
        unheard=tuple(event for event in ended if not _follows(event, attempts)),
    )


def _completed(history: History, after_ns: int) -> set[int]:
    """The batches that were complete after a moment."""
    completed = history.of(CheckpointCompleted)
    return {event.checkpoint for event in completed if event.at_ns >= after_ns}


def _done(lost: TaskAttempt, attempts: Collection[TaskAttempt]) -> bool:
    """Whether another attempt did what a lost one had to, after it was lost: also one in another
    attempt of its stage, where tasks are numbered anew. Of two of which one is speculative the
    other may have been faster."""

    def may_count(event: TaskAttempt) -> bool:
        speculative = event.speculative or lost.speculative
        return event.at_ns >= lost.at_ns or bool(speculative)

    return any(
        event.state == DONE and _part(event) == _part(lost) and may_count(event)
        for event in attempts
    )


def _follows(event: TaskAttempt, attempts: Collection[TaskAttempt]) -> bool:
    """Whether an earlier attempt of its task was seen, where there must have been one: a
    speculative one may end before the first does."""
    if not event.attempt or event.speculative:
        return True
    earlier = (each for each in attempts if each.attempt < event.attempt)
    return any(_numbered(each) == _numbered(event) for each in earlier)


def _run_again(history: History, after_ns: int) -> tuple[int, ...]:
    """Batches that failed and were triggered once more."""
    failed: set[int] = set()
    again: list[int] = []
    for event in history.of(CheckpointFailed, CheckpointTriggered):
        number = event.checkpoint
        if event.at_ns < after_ns:
            continue
        if isinstance(event, CheckpointFailed):
            failed.add(number)
        elif number in failed:
            again.append(number)
    return tuple(again)


def _task(attempt: TaskAttempt) -> Task:
    return (attempt.batch, attempt.stage, attempt.task)


def _part(attempt: TaskAttempt) -> Task:
    """A task by the partition that it makes; by its own number in records without partitions."""
    partition = attempt.task if attempt.partition is None else attempt.partition
    return (attempt.batch, attempt.stage, partition)


def _numbered(attempt: TaskAttempt) -> tuple[int | None, ...]:
    """A task in the one attempt of its stage that counts its attempts."""
    return (*_task(attempt), attempt.stage_attempt)
