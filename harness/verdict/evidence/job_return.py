"""When a job runs again after a failure: by the engine's report, or by a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streamquake.faults.schedule.event_times import acknowledged_ms
from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.harness.verdict.evidence.submitted_jobs import SubmittedJobs
from streamquake.reports.record.checkpoint_events import CheckpointCompleted, CheckpointTriggered
from streamquake.reports.record.event import MICRO_BATCH
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    JobEnded,
    JobEvent,
    JobRestored,
    JobRunning,
    JobSubmitted,
)


def running_after(history: History, failure: JobEvent) -> JobRunning | None:
    """When every task ran of the failed job, or of its replacement; if the job ended, only of its
    replacement."""
    job = set() if isinstance(failure, JobEnded) else {failure.job}
    later = {e.job for e in history.of(JobSubmitted) if e.index > failure.index}
    running = (
        event
        for event in history.of(JobRunning)
        if event.at_ns >= failure.at_ns and (None in job or event.job in {None, *job, *later})
    )
    return min(running, key=lambda event: event.at_ns, default=None)


def ran_by_ns(history: History, failure: JobEvent, running: JobRunning) -> int:
    """When every task ran again after a failure, and after the restore. Flink triggers a checkpoint
    only when all tasks run, so the stamps of one that completed may show it earlier than a late
    observation. Of different stamps of one checkpoint the earliest counts."""
    clock = EngineClock(history)
    steps_ns = [clock.moment_ns(event) for event in (failure, *history.of(JobRestored))]
    since_ns = max(at_ns for at_ns in steps_ns if at_ns <= running.at_ns)
    completed = {e.checkpoint for e in history.of(CheckpointCompleted) if e.job == running.job}
    triggered_ns = (
        clock.stamped_ns(event, event.trigger_ms)
        for event in history.of(CheckpointTriggered, CheckpointCompleted)
        if event.job == running.job
        and event.checkpoint in completed
        and event.trigger_ms is not None
        and not event.is_micro_batch
    )
    return min([running.at_ns, *(at_ns for at_ns in triggered_ns if at_ns > since_ns)])


@dataclass(frozen=True, kw_only=True)
class ContradictedTrigger:
    """A completed checkpoint whose events report different triggers."""

    completed: CheckpointCompleted
    stamps: tuple[float, float]
    """Both triggers, epoch milliseconds."""

    @property
    def message(self) -> str:
        apart_s = abs(self.stamps[0] - self.stamps[1]) / 1000
        return (
            f"checkpoint {self.completed.checkpoint} is recorded with triggers that are "
            f"{apart_s:,.1f} s apart"
        )


def contradicted_triggers(history: History) -> Iterator[ContradictedTrigger]:
    """The checkpoints whose trigger and end do not report the same moment. A micro-batch may have
    been started more than once."""
    began_ms = {(e.job, e.checkpoint): e.trigger_ms for e in history.of(CheckpointTriggered)}
    for completed in history.of(CheckpointCompleted):
        one_ms, other_ms = began_ms.get((completed.job, completed.checkpoint)), completed.trigger_ms
        if completed.is_micro_batch or one_ms is None or other_ms is None or one_ms == other_ms:
            continue
        yield ContradictedTrigger(completed=completed, stamps=(one_ms, other_ms))


def checkpoints_since(
    history: History, restored_ns: int | None, resumed_ns: int | None
) -> Iterator[CheckpointCompleted]:
    """The completed checkpoints that were triggered after the system resumed, each at the moment of
    its completion, by the engine's stamps where they are recorded. A micro-batch is triggered
    before its tasks run, so it counts from the restore on. Savepoints do not count: they do not
    prove that the job continues to take checkpoints. Nor do checkpoints of a job that was never
    submitted."""
    if resumed_ns is None:
        return
    clock, jobs = EngineClock(history), SubmittedJobs(history)
    earliest_ns = {MICRO_BATCH: resumed_ns if restored_ns is None else restored_ns}
    triggered = {
        e.checkpoint
        for e in history.of(CheckpointTriggered)
        if e.at_ns >= earliest_ns.get(e.type or "", resumed_ns)
        and "SAVEPOINT" not in (e.type or "")
    }
    for event in history.of(CheckpointCompleted):
        if event.at_ns < resumed_ns or event.checkpoint not in triggered:
            continue
        began_ns = clock.stamped_ns(event, event.trigger_ms)
        if jobs.may_include(event.job) and (event.is_micro_batch or began_ns >= resumed_ns):
            yield replace(event, at_ns=clock.stamped_ns(event, acknowledged_ms(event)))
