"""Which jobs a record knows: an event of any other job proves nothing about them."""

from __future__ import annotations

from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted


class SubmittedJobs:
    """The jobs of which the submission is recorded. An existing job is not submitted, and old
    records name no job: then every job may be one of them."""

    def __init__(self, history: History) -> None:
        self._jobs = {event.job for event in history.of(JobSubmitted)}

    def may_include(self, job: str | None) -> bool:
        return job is None or not self._jobs or not self._jobs.isdisjoint({job, None})
