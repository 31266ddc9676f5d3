"""Attempts of a subtask that begin while their job runs and goes on running.

An engine starts another attempt of a task only in a failover or a rescaling, for which the job
leaves the state RUNNING, so that it is later seen to be running again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from streamquake.harness.verdict.evidence.attempt_contradictions import SAME_POLL_NS, attempts_of
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    JobEvent,
    JobFailing,
    JobRestarting,
    JobRunning,
    TaskChanged,
)


def unexplained_attempts(history: History) -> Iterator[str]:
    """A message for each later attempt of a subtask that begins while its job is running, if the
    job is not seen to fail or restart by the next poll, nor to be running again."""
    states: dict[str | None, list[JobEvent]] = {}
    for event in history.of(JobEvent):
        if isinstance(event, JobFailing | JobRestarting | JobRunning):
            states.setdefault(event.job, []).append(event)
    for (job, _, _), events in attempts_of(history).items():
        for before, later in pairwise(_first_of_attempts(events)):
            if later.attempt > before.attempt and _unexplained(later, states.get(job, ())):
                yield (
                    f"{later.name} ({later.subtask}) is recorded in attempt {later.attempt} at "
                    f"{later.at_s:,.1f} s, but its job was running and did not fail or restart"
                )


def _unexplained(attempt: TaskChanged, states: Sequence[JobEvent]) -> bool:
    earlier = [state for state in states if state.at_ns <= attempt.at_ns]
    following = next((state for state in states if state.at_ns > attempt.at_ns), None)
    if not earlier or not isinstance(earlier[-1], JobRunning):
        return False
    return following is None or not (
        isinstance(following, JobRunning) or following.at_ns <= attempt.at_ns + SAME_POLL_NS
    )


def _first_of_attempts(events: Sequence[TaskChanged]) -> Iterator[TaskChanged]:
    """The first event of each attempt, in the order of the events."""
    known: int | None = None
    for event in events:
        if event.attempt != known:
            yield event
        known = event.attempt
