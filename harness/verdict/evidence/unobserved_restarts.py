"""Restarts of a job that were counted, or numbered an attempt, and are not in the record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from streamquake.harness.verdict.evidence.task_restarts import SubtaskHistory
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobFailing, JobRestarting


def unobserved_restarts(history: History, after_ns: int = 0) -> Iterator[str]:
    """A message for each restart from a moment on before which others were counted and not
    observed, or with a number that no restart has. Another JobManager begins to count anew."""
    counted: dict[str | None, int] = {}
    for event in history.of(JobRestarting):
        if event.restart is None:
            continue
        before = counted.get(event.job, 0)
        if event.at_ns >= after_ns:
            if event.restart < 1:
                yield f"the restart at {event.at_s:.1f} s is recorded as number {event.restart}"
            if event.restart > before + 1:
                seen = f"{before} had been observed before"
                yield f"{event.restart} restarts were counted by {event.at_s:.1f} s, {seen}"
        counted[event.job] = event.restart


def skipped_attempts(
    found: Iterable[SubtaskHistory], history: History, since_ns: int
) -> Iterator[str]:
    """A message for each subtask that skipped more attempts than restarts and failures of its job
    were recorded since a moment. Each restart begins one attempt; a poll may miss some of them, and
    of several restarts between two polls only the last one, but no failure. A scheduler that
    reports no restarts at all proves nothing."""
    restarts, failures = (
        sum(event.at_ns >= since_ns for event in history.of(kind))
        for kind in (JobRestarting, JobFailing)
    )
    if not restarts:
        return
    recorded = max(restarts, failures)
    for task in found:
        numbers = [task.before.attempt, *(attempt[0].attempt for attempt in task.attempts)]
        for before, attempt in pairwise(numbers):
            if attempt - before > recorded:
                yield (
                    f"{task.name} ({task.subtask}) is recorded in attempt {before} and then in "
                    f"attempt {attempt}, and the job with {recorded} restarts"
                )
