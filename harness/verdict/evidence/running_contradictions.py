"""Whether the record agrees on when a job ran again: no task of it is deployed later, none was seen
to run long after it took part in checkpoints, and every checkpoint that may show it earlier has one
trigger."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, EngineClock, clock_moved
from streamquake.harness.verdict.evidence.job_return import contradicted_triggers
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRunning, TaskChanged

POLL_NS = 15 * 10**9
"""How long one poll of a job's tasks and their metrics may take; at most 16 s in recorded runs, on
a machine that had far too much to do."""


def running_contradiction(
    history: History, clock: EngineClock, running: JobRunning, since_ns: int, until_ns: int | None
) -> str:
    """What contradicts that all tasks ran when that was observed, after a failure at `since_ns` and
    before the next one at `until_ns` (None without another); empty where nothing does."""
    if clock_moved(history):
        return ""
    latest_ns = inf if until_ns is None else until_ns
    for task in history.of(TaskChanged):
        if task.job != running.job or task.deployed_ms <= 0:
            continue
        deployed_ns = clock.stamped_ns(task, task.deployed_ms)
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


def seen_to_run_late(history: History) -> Iterator[str]:
    """A message for each attempt of a subtask that was first seen to run long after checkpoints
    that it acknowledged were seen to complete; none where a fault moved the clocks.

    A checkpoint is triggered only when every task runs. After one of these the engine may not have
    answered for long; it did where another one completed long after it, and long before the attempt
    was seen to run.
    """
    if clock_moved(history):
        return
    seen = set()
    for task in history.of(TaskChanged):
        attempt = (task.job, task.place, task.attempt, task.start_ms)
        if task.state != "RUNNING" or attempt in seen:
            continue
        seen.add(attempt)
        acknowledged_ns = [event.at_ns for event in _acknowledged_before(task, history)]
        first_ns = min(acknowledged_ns, default=0)
        if any(first_ns + POLL_NS < at_ns < task.at_ns - POLL_NS for at_ns in acknowledged_ns):
            yield (
                f"{task.name} ({task.subtask}) was seen to run at {task.at_s:.1f} s, and a "
                f"checkpoint that it acknowledged to complete at {first_ns / 1e9:.1f} s"
            )


def _acknowledged_before(task: TaskChanged, history: History) -> Iterator[CheckpointCompleted]:
    """The checkpoints that were triggered after an attempt had been deployed, acknowledged by it,
    and seen to complete before a change of its state."""
    for event in history.of(CheckpointCompleted):
        later = 0 < task.deployed_ms < (event.trigger_ms or 0)
        if event.job == task.job and later and event.at_ns < task.at_ns:
            parts = event.subtasks or ()
            if any((part["vertex"], part["subtask"]) == task.place for part in parts):
                yield event
