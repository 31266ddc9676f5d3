"""Whether the record agrees on when a job ran again: no task of it is deployed later, and every
checkpoint that may show it earlier has one trigger."""

from __future__ import annotations

from math import inf

from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, EngineClock, clock_moved
from streamquake.harness.verdict.evidence.job_return import contradicted_triggers
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRunning, TaskChanged


def running_contradiction(
    history: History, clock: EngineClock, running: JobRunning, since_ns: int, until_ns: int | None
) -> str:
    """What contradicts that all tasks ran when that was observed, after a failure at `since_ns` and
    before the next one at `until_ns` (None without another); empty where nothing does."""
    if clock_moved(history):
        return ""
    latest_ns = inf if until_ns is None else until_ns
    for task in history.of(TaskChanged):
        if task.job != running.job or (task.start_ms or 0) <= 0:
            continue
        deployed_ns = clock.stamped_ns(task, task.start_ms)
        if running.at_ns + STAMPS_S * 1e9 < deployed_ns < latest_ns:
            return (
                f"every task was seen to run at {running.at_s:.1f} s, and {task.name} "
                f"({task.subtask}) was deployed at {deployed_ns / 1e9:.1f} s"
            )
    for each in contradicted_triggers(history):
        moments_ns = (clock.stamped_ns(each.completed, stamp) for stamp in each.stamps)
        of_job = each.completed.job == running.job
        if of_job and any(since_ns < at_ns < running.at_ns for at_ns in moments_ns):
            return each.message
    return ""
