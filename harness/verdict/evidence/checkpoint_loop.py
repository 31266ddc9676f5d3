"""The loop of a job that tolerates too few failed checkpoints: fail, restart, fall back, fail.

Every restart sets the job back to the same checkpoint and gives it more to catch up with, so the
next checkpoint fails as well: the job's state is "running" most of the time, and it makes no
progress. A query whose drivers all end over the same batch is such a loop too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


@dataclass(frozen=True, kw_only=True)
class _Restart:
    """A restart because of failed checkpoints."""

    failed: JobFailing
    at_s: float
    restored: int | None
    """The checkpoint restored after the failure; None where that was not observed."""
    completed: int
    """How many checkpoints had completed when the job failed."""


def restart_loops_of(history: History) -> tuple[RestartLoop, ...]:
    """The loops of a run: at least `RESTARTS` restarts because of failed checkpoints set the job
    back to the same checkpoint. Where a restore was not observed, the job was set back to the same
    one as by the failure before if no checkpoint had completed in between."""
    groups: list[list[_Restart]] = []
    for restart in _restarts(history):
        group = next((each for each in groups if _continues(each, restart)), None)
        if group is None:
            groups.append([restart])
        else:
            group.append(restart)
    return tuple(_loop(group) for group in groups if len(group) >= RESTARTS)


def _continues(group: Sequence[_Restart], restart: _Restart) -> bool:
    """Whether a restart set the job back to the same checkpoint as those of a group."""
    if group[0].failed.job != restart.failed.job:
        return False
    back_to = _checkpoint_of(group)
    if back_to is not None and restart.restored is not None:
        return back_to == restart.restored
    return group[-1].completed == restart.completed


def _checkpoint_of(group: Iterable[_Restart]) -> int | None:
    """The checkpoint to which restarts set the job back; None where no restore was observed."""
    return next((each.restored for each in group if each.restored is not None), None)


def _loop(group: Sequence[_Restart]) -> RestartLoop:
    first = group[0].failed
    return RestartLoop(
        job=first.job,
        checkpoint=_checkpoint_of(group),
        failed_s=tuple(each.at_s for each in group),
        cause=first.cause or "",
        over_batch=bool(first.own),
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


def _restarts(history: History) -> Iterator[_Restart]:
    """Each failure because of checkpoints that a restart followed, by job, in order."""
    clock = EngineClock(history)
    checkpoints = checkpoints_of(history)
    recorded = history.of(JobFailing, JobRestored, JobRestarting)
    for job in dict.fromkeys(event.job for event in recorded):
        own = sorted((e for e in recorded if e.job == job), key=clock.moment_ns)
        failures = [(at, each) for at, each in enumerate(own) if isinstance(each, JobFailing)]
        ends = [*(at for at, _ in failures[1:]), len(own)]
        for (begin, failed), end in zip(failures, ends, strict=False):
            after = own[begin + 1 : end]
            if _over_checkpoints(failed) and after:
                restored = [each for each in after if isinstance(each, JobRestored)]
                at_s = clock.moment_ns(failed) / 1e9
                yield _Restart(
                    failed=failed,
                    at_s=at_s,
                    restored=restored[-1].checkpoint if restored else None,
                    completed=_completed_by(checkpoints, job, at_s),
                )
