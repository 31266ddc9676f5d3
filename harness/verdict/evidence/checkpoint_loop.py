"""The loop of a job that tolerates too few failed checkpoints: fail, restart, fall back, fail.

Every restart sets the job back to the same checkpoint and gives it more to catch up with, so the
next checkpoint fails as well: the job's state is "running" most of the time, and it makes no
progress. A query whose drivers all end over the same batch is such a loop too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from streamquake.harness.verdict.evidence.checkpoints import Checkpoint, checkpoints_of
from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobFailing, JobRestarting, JobRestored

EXCEEDED = "Exceeded checkpoint tolerable failure threshold"
"""Flink's `CheckpointFailureManager.EXCEEDED_CHECKPOINT_TOLERABLE_FAILURE_MESSAGE`."""
RESTARTS = 3
"""So many restarts from one checkpoint are a loop: two may be chance."""


@dataclass(frozen=True, kw_only=True)
class RestartLoop:
    """Restarts of a job from the same checkpoint; seconds on the run's clock."""

    job: Any
    checkpoint: int | None
    """The checkpoint that it was set back to each time; None for its beginning, or where that was
    not observed."""
    failed_s: tuple[float, ...]
    cause: str
    over_batch: bool
    """Whether it is a query that ends over the same batch each time."""


def restart_loops_of(history: History) -> tuple[RestartLoop, ...]:
    """The loops of a run: at least `RESTARTS` restarts because of failed checkpoints set the job
    back to the same checkpoint. Where its restores were not observed, no checkpoint may have
    completed between the failures."""
    checkpoints = checkpoints_of(history)
    restarts: dict[tuple[Any, int | None, int], list[tuple[float, JobFailing]]] = defaultdict(list)
    for failed, at_s, restored in _restarts(history):
        done = 0 if restored is not None else _completed_by(checkpoints, failed.job, at_s)
        restarts[failed.job, restored, done].append((at_s, failed))
    return tuple(
        RestartLoop(
            job=job,
            checkpoint=back_to,
            failed_s=tuple(at_s for at_s, _ in times),
            cause=times[0][1].cause or "",
            over_batch=bool(times[0][1].own),
        )
        for (job, back_to, _), times in restarts.items()
        if len(times) >= RESTARTS
    )


def _completed_by(checkpoints: Iterable[Checkpoint], job: Any, at_s: float) -> int:
    """How many checkpoints of a job, which it can be set back to, had completed at a moment."""
    return sum(
        each.completed and (each.acknowledged_s or each.ended_s or 0.0) <= at_s
        for each in checkpoints
        if each.job == job and not each.savepoint
    )


def tolerable_restarts(history: History) -> int:
    """How often a job was restarted because too many checkpoints had failed."""
    return sum(1 for _ in _restarts(history))


def _over_checkpoints(failed: JobFailing) -> bool:
    """Whether a job failed because of its checkpoints: too many failed, or a query ended over a
    batch."""
    return EXCEEDED in (failed.cause or "") or bool(failed.own)


def _restarts(history: History) -> Iterator[tuple[JobFailing, float, int | None]]:
    """(failure, its moment in seconds, the checkpoint restored after it), of each failure that a
    restart followed."""
    clock = EngineClock(history)
    recorded = history.of(JobFailing, JobRestored, JobRestarting)
    for job in dict.fromkeys(event.job for event in recorded):
        own = sorted((e for e in recorded if e.job == job), key=clock.moment_ns)
        failures = [(at, each) for at, each in enumerate(own) if isinstance(each, JobFailing)]
        ends = [*(at for at, _ in failures[1:]), len(own)]
        for (begin, failed), end in zip(failures, ends, strict=False):
            after = own[begin + 1 : end]
            if _over_checkpoints(failed) and after:
                restored = [each for each in after if isinstance(each, JobRestored)]
                back_to = restored[-1].checkpoint if restored else None
                yield failed, clock.moment_ns(failed) / 1e9, back_to
