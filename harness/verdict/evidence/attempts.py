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
from streamquake.reports.record.job_events import JobRestored, TaskAttempt

Task = tuple[int | None, int, int]
"""Batch, stage and the number of a task in it."""
LOST = "ExecutorLostFailure"
UNFETCHED = ("FetchFailed", "Resubmitted")
"""The end of an attempt that could not fetch shuffle output, and of a finished attempt whose
shuffle output was lost (`TaskEndReason`)."""
DONE = "SUCCESS"
"""The state of a successful attempt."""
KINDS = ("task", "region", "job")


@dataclass(frozen=True, kw_only=True)
class RepeatedTasks:
    """The tasks that were repeated after a moment."""

    affected: Mapping[Task, TaskAttempt]
    """Attempts that were lost with an executor of the affected nodes."""
    shuffle: Mapping[Task, TaskAttempt]
    """Attempts repeated only because shuffle output was lost."""
    unexplained: Mapping[Task, TaskAttempt]
    """Attempts that failed for another reason, on any node."""
    batches: tuple[int, ...]
    """The batches that ran again as a whole."""
    tasks: int
    """How many tasks the affected batches had."""
    unfinished: tuple[TaskAttempt, ...]
    """Attempts of `affected` without evidence that their task succeeded, or that their batch
    completed or ran again as a whole."""
    without_earlier: tuple[TaskAttempt, ...]
    """Attempts that were not the first of their task, without an event of an earlier one."""

    @property
    def kind(self) -> str | None:
        """The narrowest kind of failover: `task` where only failed tasks were repeated, `region`
        where tasks were also repeated for lost shuffle output, `job` where a batch ran again as a
        whole; None where nothing was repeated."""
        if self.batches:
            return "job"
        if self.shuffle:
            return "region"
        return "task" if self.affected or self.unexplained else None

    @property
    def count(self) -> int:
        return len({*self.affected, *self.shuffle, *self.unexplained})


def repeats_after(history: History, after_ns: int, nodes: Collection[str]) -> RepeatedTasks:
    """The tasks repeated since the moment of a fault on these nodes."""
    attempts = [e for e in history.of(TaskAttempt) if "batch" in e.value]
    ended = [event for event in attempts if event.at_ns >= after_ns]
    batches = _run_again(history, after_ns)
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
        elif event.batch not in batches and _had_succeeded(event, attempts):
            shuffle.setdefault(place, event)
    shuffle = {place: event for place, event in shuffle.items() if place not in affected}
    affected_batches = {place[0] for place in (*affected, *shuffle, *unexplained)}
    return RepeatedTasks(
        affected=affected,
        shuffle=shuffle,
        unexplained=unexplained,
        batches=batches,
        tasks=len({_task(e) for e in ended if e.batch in affected_batches}),
        unfinished=tuple(
            event
            for event in affected.values()
            if event.batch not in {*batches, *_completed_batches(history, event.at_ns)}
            and not _was_repeated(event, attempts)
        ),
        without_earlier=tuple(event for event in ended if not _follows_recorded(event, attempts)),
    )


def _completed_batches(history: History, after_ns: int) -> set[int]:
    """The batches that completed after a moment."""
    completed = history.of(CheckpointCompleted)
    return {event.checkpoint for event in completed if event.at_ns >= after_ns}


def _was_repeated(lost: TaskAttempt, attempts: Collection[TaskAttempt]) -> bool:
    """Whether another attempt of the same partition succeeded after this one was lost, also in
    another attempt of its stage, which numbers its tasks again from zero. A speculative copy, or
    its original, may have succeeded earlier."""

    def may_count(event: TaskAttempt) -> bool:
        speculative = event.speculative or lost.speculative
        return event.at_ns >= lost.at_ns or bool(speculative)

    return any(
        event.state == DONE and _partition_task(event) == _partition_task(lost) and may_count(event)
        for event in attempts
    )


def _follows_recorded(event: TaskAttempt, attempts: Collection[TaskAttempt]) -> bool:
    """Whether an earlier attempt of its task was recorded, if there must be one: a speculative one
    may end before the first does."""
    return not event.attempt or bool(event.speculative or _earlier_attempts(event, attempts))


def _had_succeeded(event: TaskAttempt, attempts: Collection[TaskAttempt]) -> bool:
    """Whether it succeeded although its task had already: the shuffle output was lost, also if the
    record lacks the `Resubmitted`. A speculative copy and its original may both succeed."""
    both = (event, *_earlier_attempts(event, attempts))
    return sum(each.state == DONE and not each.speculative for each in both) > 1


def _earlier_attempts(
    event: TaskAttempt, attempts: Collection[TaskAttempt]
) -> tuple[TaskAttempt, ...]:
    """The recorded attempts before this one, of the same task in the same attempt of its stage."""
    if not event.attempt:
        return ()  # most attempts of a long run are the first ones
    earlier = (each for each in attempts if each.attempt < event.attempt)
    same = _in_stage_attempt(event)
    return tuple(each for each in earlier if _in_stage_attempt(each) == same)


def _run_again(history: History, after_ns: int) -> tuple[int, ...]:
    """Batches that were triggered again after they failed, or after a restore: the record may lack
    the failure."""
    begun: set[tuple[str | None, int]] = set()
    set_back: set[tuple[str | None, int]] = set()
    again: list[int] = []
    for event in history.of(CheckpointFailed, CheckpointTriggered, JobRestored):
        after = event.at_ns >= after_ns
        if isinstance(event, CheckpointTriggered):
            if after and (event.job, event.checkpoint) in set_back:
                again.append(event.checkpoint)
            begun.add((event.job, event.checkpoint))
        elif after and isinstance(event, CheckpointFailed):
            set_back.add((event.job, event.checkpoint))
        elif after:
            set_back |= {each for each in begun if each[0] == event.job}
    return tuple(again)


def _task(attempt: TaskAttempt) -> Task:
    return (attempt.batch, attempt.stage, attempt.task)


def _partition_task(attempt: TaskAttempt) -> Task:
    """A task by the partition that it computes; by its own number in records without partitions."""
    partition = attempt.task if attempt.partition is None else attempt.partition
    return (attempt.batch, attempt.stage, partition)


def _in_stage_attempt(attempt: TaskAttempt) -> tuple[int | None, ...]:
    """A task within one attempt of its stage: only there its attempts are counted together."""
    return (*_task(attempt), attempt.stage_attempt)
