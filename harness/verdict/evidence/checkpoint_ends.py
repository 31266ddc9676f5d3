"""Checkpoints whose end was never recorded, although it should have been."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from streamquake.harness.verdict.evidence.checkpoints import Checkpoint
from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted

GRACE_S = 10.0
"""A checkpoint triggered so shortly before a restart, or the end of the record, may have been in
progress."""
RESTART_ACTIONS = (
    Action.JOB_SUBMITTED,
    Action.JOB_FAILING,
    Action.JOB_RESTARTING,
    Action.JOB_RESTORED,
)
"""Events at which a checkpoint in progress may end without a record: the next JobManager may not
know it."""


def checkpoints_without_end(
    history: History, checkpoints: Iterable[Checkpoint]
) -> list[Checkpoint]:
    """The checkpoints that were triggered and never ended, except those that may have been in
    progress when the job restarted, or when the record ended. These are among the last ones that
    were triggered before, as many as the job takes at a time: any other had ended by then."""
    clock = EngineClock(history)
    ends_s = sorted(clock.moment_ns(event) / 1e9 for event in history.of(*RESTART_ACTIONS))
    ends_s.append(max((event.at_s for event in history), default=0.0))
    limits = max_concurrent_of(history)
    triggered: dict[tuple[Any, float], list[Checkpoint]] = defaultdict(list)
    for each in checkpoints:
        if not each.savepoint:
            end_s = ends_s[min(bisect_right(ends_s, each.began_s), len(ends_s) - 1)]
            triggered[each.job, end_s].append(each)
    return [
        each
        for (job, end_s), of_job in triggered.items()
        for each in of_job[: -limits.get(job, 1)]
        if each.ended_s is None and end_s - each.began_s > GRACE_S
    ]


def max_concurrent_of(history: History) -> dict[Any, int]:
    """Job -> how many checkpoints it takes at the same time, where that is recorded."""
    recorded = {
        event.job: (event.config or {}).get("max_concurrent") for event in history.of(JobSubmitted)
    }
    return {job: limit for job, limit in recorded.items() if type(limit) is int and limit > 0}
