"""Failures that were seen after the restart which they caused, put before it.

A job's state and its tasks are asked for one after the other: where a quick restart falls inside
one slow look, the tasks are seen to run again before the failure is.
"""

from __future__ import annotations

from dataclasses import replace

from streamquake.faults.moments import STAMPS
from streamquake.harness.evidence.engine_clock import EngineClock, clock_moved
from streamquake.harness.evidence.restores import BREAKS
from streamquake.reports.event import Action, Event
from streamquake.reports.history import History


def in_engine_order(history: History) -> History:
    """The history with each such failure at the engine's own moment, in its old place otherwise."""
    if clock_moved(history):
        return history
    clock = EngineClock(history)
    return History(
        replace(event, at_ns=clock.moment_ns(event))
        if event.action in BREAKS and _ran_again_unseen(history, clock, event)
        else event
        for event in history
    )


def _ran_again_unseen(history: History, clock: EngineClock, failure: Event) -> bool:
    """Whether the job was seen to run before the failure was seen, with a task that began after
    it. That the job was seen to run is no proof: the look may have begun before the failure."""
    failed_ms, job = failure.value.get(STAMPS[failure.action]), failure.value.get("job")
    if not failed_ms:
        return False
    failed_ns = clock.moment_ns(failure)
    if failed_ns == failure.at_ns:
        return False
    ran = [
        event.at_ns
        for event in history.of(Action.JOB_RUNNING)
        if event.value.get("job") == job and failed_ns <= event.at_ns <= failure.at_ns
    ]
    return bool(ran) and any(
        event.value.get("job") == job
        and event.value.get("state") == "RUNNING"
        and (event.value.get("start_ms") or 0) >= failed_ms
        and event.at_ns <= ran[-1]
        for event in history.of(Action.TASK_CHANGED)
    )
