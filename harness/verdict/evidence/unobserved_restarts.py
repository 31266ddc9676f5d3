"""Restarts of a job of which the record has a part only: they were counted, or numbered an attempt,
or began one, and the rest of them is not recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from streamquake.cluster.engines.flink.operations import DEFAULT_SCHEDULER, scheduler_of
from streamquake.faults.schedule.event_times import stamp_ms
from streamquake.harness.verdict.evidence.engine_clock import clock_moved
from streamquake.harness.verdict.evidence.task_restarts import (
    SubtaskHistory,
    restarts_since_first_run,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    FAILURES,
    JobFailing,
    JobRestarting,
    JobRunning,
    JobSubmitted,
    TaskChanged,
)
from streamquake.topologies.model import Topology

SCHEDULER_MODE = "scheduler-mode"
"""Flink's other setting that selects a scheduler. The default one restarts a job only after a
failure."""


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


def restarted_without_failure(history: History, topology: Topology) -> Iterator[str]:
    """A message for each job of which a subtask began anew after all had run, and no failure and no
    restart is recorded between the two deployments, by the stamps of the engine.

    Of several failures that a restart is due to the engine may report the first one only: so the
    whole job must have been seen to run in between. Nothing is known where a fault moved the
    clocks, in records without these stamps, and of a scheduler that restarts a job to rescale it.
    """
    if clock_moved(history) or _may_rescale_by_itself(topology):
        return
    for job in dict.fromkeys(event.job for event in history.of(JobSubmitted)):
        events = history.of(TaskChanged, JobRunning, *FAILURES)
        own = History(event for event in events if event.job == job)
        if any(stamp_ms(event) is None for event in own.of(*FAILURES)):
            continue
        found = restarts_since_first_run(own).values()
        message = next(filter(None, (_without_failure(task, own) for task in found)), None)
        if message is not None:
            yield message


def _without_failure(task: SubtaskHistory, own: History) -> str | None:
    """A message for the first new attempt of a subtask that no failure of the job explains."""
    attempts = ((task.before,), *task.attempts)
    deployed = [(each, max(event.deployed_ms for event in each)) for each in attempts]
    known = [(attempt, at_ms) for attempt, at_ms in deployed if at_ms > 0]
    for (former, former_ms), (attempt, at_ms) in pairwise(known):
        since_ns, until_ns = former[0].at_ns, attempt[0].at_ns
        whole = any(since_ns <= each.at_ns <= until_ns for each in own.of(JobRunning))
        stamps_ms = (stamp_ms(event) or 0 for event in own.of(*FAILURES))
        failed = any(former_ms <= each <= at_ms for each in stamps_ms)
        if whole and not failed:
            return (
                f"{task.name} ({task.subtask}) began anew at {attempt[0].at_s:.1f} s, and no "
                "failure of its job is recorded since its attempt before"
            )
    return None


def _may_rescale_by_itself(topology: Topology) -> bool:
    """Whether a Flink has, or may have, a scheduler that restarts a job to rescale it: of a system
    that is only used, the settings are not known."""
    return any(
        service.endpoint is not None
        or SCHEDULER_MODE in service.config
        or scheduler_of(service) != DEFAULT_SCHEDULER
        for service in topology.services.values()
        if service.engine == "flink"
    )
