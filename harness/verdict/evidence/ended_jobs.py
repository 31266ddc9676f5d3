"""Jobs that are recorded to end, and to go on afterwards: one of both is wrong.

A job goes on when it runs, takes checkpoints, or reads what was sent after its end. Moments are the
engine's own stamps where it has them: its end may be observed late.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.reports.record.checkpoint_events import (
    CheckpointCompleted,
    CheckpointTriggered,
    StampedCheckpointEvent,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobEnded, JobEvent, JobRunning, JobSubmitted
from streamquake.reports.record.run_events import RecordsSent, RunDrained

OBSERVED_LATER_NS = 3 * 10**9
"""The end of a job is observed by another request than its checkpoints, so that one that was
triggered before may be recorded later."""


def contradicted_ends(history: History) -> Iterator[str]:
    """A message for each job that runs, or takes a checkpoint, after its terminal state."""
    clock = EngineClock(history)
    for end in history.of(JobEnded):
        later_ns = [
            at_ns
            for event in history.of(JobRunning, CheckpointTriggered, CheckpointCompleted)
            if event.job is not None
            and event.job == end.job
            and (at_ns := _went_on_ns(event, end, clock)) is not None
        ]
        if later_ns:
            yield (
                f"the job {end.state} at {clock.moment_ns(end) / 1e9:.1f} s, and is recorded to go "
                f"on at {min(later_ns) / 1e9:.1f} s"
            )


def _went_on_ns(event: JobEvent, end: JobEnded, clock: EngineClock) -> int | None:
    """The moment of the event, if it is long after the end of its job; else None. An event without
    a stamp may be observed late itself, so it must follow the observation of the end."""
    stamp_ms = event.trigger_ms if isinstance(event, StampedCheckpointEvent) else None
    if isinstance(event, CheckpointCompleted):
        stamp_ms = event.last_ack_ms or stamp_ms
    ended_ns = clock.moment_ns(end) if stamp_ms else end.at_ns
    at_ns = clock.stamped_ns(event, stamp_ms)
    return at_ns if at_ns > ended_ns + OBSERVED_LATER_NS else None


def drained_without_job(history: History) -> str | None:
    """A message if a job has read everything, by the drain, although it had ended before the load
    and no job was submitted since; None where the two agree."""
    clock = EngineClock(history)
    submitted, ends = history.of(JobSubmitted), history.of(JobEnded)
    if history.first(RunDrained) is None or not submitted:
        return None
    if not {event.job for event in submitted} <= {end.job for end in ends}:
        return None
    last = max(ends, key=clock.moment_ns)
    ended_ns = clock.moment_ns(last)
    if any(clock.moment_ns(event) > ended_ns for event in submitted):
        return None
    acknowledged_ns = (
        min(event.at_ns, event.acknowledged_until_ns or event.at_ns)
        for event in history.of(RecordsSent)
        if event.status == "acknowledged"
    )
    sent_ns = max(acknowledged_ns, default=0)
    if sent_ns <= ended_ns + OBSERVED_LATER_NS:
        return None
    return (
        f"the last job {last.state} at {ended_ns / 1e9:.1f} s, and is recorded to have read what "
        f"was sent until {sent_ns / 1e9:.1f} s"
    )
