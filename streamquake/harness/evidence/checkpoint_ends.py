"""Checkpoints whose end was never recorded, although it should have been seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from streamquake.harness.evidence.checkpoints import Checkpoint
from streamquake.reports.event import Action
from streamquake.reports.history import History

GRACE_S = 10.0
"""One that was triggered so shortly before the end of the record may have been in progress."""
AFRESH = (Action.JOB_SUBMITTED, Action.JOB_FAILING, Action.JOB_RESTARTING, Action.JOB_RESTORED)
"""What is in progress then may end unseen: whoever takes over may know nothing of it."""


def without_end(history: History, checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Those that were triggered and never ended, without a restart since; but for as many as the
    job takes at a time, which may be in progress until the end of the record."""
    over_s = max((event.at_s for event in history), default=0.0)
    began_afresh_s = max((event.at_s for event in history.of(*AFRESH)), default=0.0)
    at_a_time = _at_a_time(history)
    going_on: dict[Any, list[Checkpoint]] = defaultdict(list)
    for each in checkpoints:
        if each.ended_s is None and not each.savepoint and each.triggered_s >= began_afresh_s:
            going_on[each.job].append(each)
    return [
        each
        for job, several in going_on.items()
        for each in several[: -at_a_time.get(job, 1)]
        if over_s - each.triggered_s > GRACE_S
    ]


def _at_a_time(history: History) -> dict[Any, int]:
    """Job -> how many checkpoints it takes at the same time, where that is told."""
    told = {
        event.value.get("job"): (event.value.get("config") or {}).get("max_concurrent")
        for event in history.of(Action.JOB_SUBMITTED)
    }
    return {job: several for job, several in told.items() if type(several) is int and several > 0}
