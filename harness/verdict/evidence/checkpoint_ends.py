"""Checkpoints whose end was never recorded, although it should have been seen."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from streamquake.harness.verdict.evidence.checkpoints import Checkpoint
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted

GRACE_S = 10.0
"""One that was triggered so shortly before a restart, or the end of the record, may have been in
progress."""
AFRESH = (Action.JOB_SUBMITTED, Action.JOB_FAILING, Action.JOB_RESTARTING, Action.JOB_RESTORED)
"""What is in progress then may end unseen: the next JobManager may know nothing of it."""


def without_end(history: History, checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Those that were triggered and never ended; but for as many as the job takes at a time, which
    may have been in progress when it restarted, or the record ended."""
    ends_s = sorted(event.at_s for event in history.of(*AFRESH))
    ends_s.append(max((event.at_s for event in history), default=0.0))
    taken_at_once = at_a_time(history)
    going_on: dict[tuple[Any, float], list[Checkpoint]] = defaultdict(list)
    for each in checkpoints:
        if each.ended_s is None and not each.savepoint:
            end_s = ends_s[min(bisect_right(ends_s, each.triggered_s), len(ends_s) - 1)]
            going_on[each.job, end_s].append(each)
    return [
        each
        for (job, end_s), several in going_on.items()
        for each in several[: -taken_at_once.get(job, 1)]
        if end_s - each.triggered_s > GRACE_S
    ]


def at_a_time(history: History) -> dict[Any, int]:
    """Job -> how many checkpoints it takes at the same time, where that is recorded."""
    recorded = {
        event.job: (event.config or {}).get("max_concurrent") for event in history.of(JobSubmitted)
    }
    return {
        job: several for job, several in recorded.items() if type(several) is int and several > 0
    }
