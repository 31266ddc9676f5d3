"""Which jobs a record knows: an event of any other job proves nothing about them."""

from __future__ import annotations

from itertools import pairwise

from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    JobEnded,
    JobEvent,
    JobSubmitted,
    TaskAttempt,
    TaskChanged,
)


class SubmittedJobs:
    """The jobs of which the submission is recorded. An existing job is not submitted, and old
    records name no job: then every job may be one of them."""

    def __init__(self, history: History) -> None:
        self._jobs = {event.job for event in history.of(JobSubmitted)}

    def may_include(self, job: str | None) -> bool:
        return job is None or not self._jobs or not self._jobs.isdisjoint({job, None})


def never_ran(history: History) -> str | None:
    """A message if a job was submitted of which the record has no other event, although the job
    before it never ended; None where there is none. A job replaces one that has ended."""
    jobs = list(dict.fromkeys(event.job for event in history.of(JobSubmitted)))
    ended = {event.job for event in history.of(JobEnded)}
    seen = {event.job for event in history.of(JobEvent) if not isinstance(event, JobSubmitted)}
    for former, job in pairwise(jobs):
        if former not in ended and job not in seen:
            return f"the job {job} was submitted and never ran, and {former} did not end"
    return None


def task_of_unknown_job(history: History) -> str | None:
    """A message for the first task of a job, or of a query, whose submission is not recorded; None
    without one."""
    jobs = SubmittedJobs(history)
    for task in history.of(TaskAttempt, TaskChanged):
        if isinstance(task, TaskAttempt | TaskChanged) and not jobs.may_include(task.job):
            return f"an attempt of a task of {task.job} is recorded, which was not submitted"
    return None
