"""New attempts of subtasks that were deployed before the fault that they are attributed to."""

from __future__ import annotations

from collections.abc import Iterable

from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, clock_moved
from streamquake.harness.verdict.evidence.task_restarts import SubtaskHistory
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged


def deployed_before(
    found: Iterable[SubtaskHistory], history: History, called_ns: int
) -> str | None:
    """A message where an attempt that was seen after the call of a fault had been deployed before
    it; None without any, and where a fault moved the clocks. No task is seen before it is deployed,
    so the fastest observation of all gives the latest moment of each deployment."""
    stamped = ((e.at_ns, _start_ns(e)) for e in history.of(TaskChanged))
    delays = [at_ns - start_ns for at_ns, start_ns in stamped if start_ns > 0]
    if not delays or clock_moved(history):
        return None
    for task in found:
        for event in (event for attempt in task.attempts for event in attempt):
            early_s = (called_ns - _start_ns(event) - min(delays)) / 1e9
            if _start_ns(event) > 0 and early_s > STAMPS_S:
                return (
                    f"{task.name} ({task.subtask}) is recorded as deployed again {early_s:.1f} s "
                    "before the fault"
                )
    return None


def _start_ns(event: TaskChanged) -> int:
    """When the attempt was deployed, by the engine's clock; 0 or less before that, or where it is
    not known."""
    return int(event.deployed_ms) * 1_000_000
