"""Which jobs a record knows: an event of any other job proves nothing about them."""

from __future__ import annotations

from itertools import pairwise

from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobEnded, JobEvent, JobSubmitted


class SubmittedJobs:
    """The jobs of which the submission is recorded. An existing job is not submitted, and old
    records name no job: then every job may be one of them."""

    def __init__(self, history: History) -> None:
        self._jobs = {event.job for event in history.of(JobSubmitted)}

    def may_include(self, job: str | None) -> bool:
        return job is None or not self._jobs or not self._jobs.isdisjoint({job, None})


def replaced_without_end(history: History) -> str | None:
    """A message if a job was submitted after another one that is not recorded to end, or if it has
    no other event itself; None without one. A job is followed until its end, and only then the one
    that replaces it."""
    jobs = list(dict.fromkeys(event.job for event in history.of(JobSubmitted)))
    ended = {event.job for event in history.of(JobEnded)}
    seen = {event.job for event in history.of(JobEvent) if not isinstance(event, JobSubmitted)}
    for former, job in pairwise(jobs):
        if former not in ended:
            return f"the job {job} was submitted, and {former} before it did not end"
        if job not in seen:
            return f"the job {job} was submitted, and nothing else is recorded of it"
    return None


def event_of_unknown_job(history: History, kind: type[JobEvent] = JobEvent) -> str | None:
    """A message for the first event, of a class, of a job or query whose submission is not
    recorded; None without one."""
    jobs = SubmittedJobs(history)
    for event in history.of(kind):
        if not jobs.may_include(event.job):
            return f"`{event.action}` is recorded of the job {event.job}, which was not submitted"
    return None
