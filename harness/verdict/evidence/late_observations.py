"""Moves failures that were observed late to the moment of the engine's own stamp.

A poll queries a job's state and its tasks one after the other. If a quick restart happens within
one slow poll, the restarted tasks are observed before the failure. If a fault is called between a
failure and the poll that observes it, the failure would seem to be the fault's.
"""

from __future__ import annotations

from dataclasses import replace

from streamquake.faults.schedule.event_times import stamp_ms
from streamquake.harness.verdict.evidence.engine_clock import STAMP_NS, EngineClock, clock_moved
from streamquake.reports.record.event import Event
from streamquake.reports.record.fault_events import FaultCalled
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import FAILURES, JobEvent, JobRunning, TaskChanged


def in_engine_order(history: History) -> History:
    """The history with each such failure at the engine's own moment; its index stays the same."""
    if clock_moved(history):
        return history
    clock = EngineClock(history)
    running, changed = history.of(JobRunning), history.of(TaskChanged)
    called_ns = [event.at_ns for event in history.of(FaultCalled)]

    def in_order(event: Event) -> Event:
        if not isinstance(event, FAILURES):
            return event
        own_ns = clock.moment_ns(event)
        ran = [e for e in running if own_ns <= e.at_ns < event.at_ns and _same_job(e, event)]
        late = bool(ran) and any(_began_between(task, event, ran[-1]) for task in changed)
        late |= any(own_ns + STAMP_NS < each <= event.at_ns for each in called_ns)
        return replace(event, at_ns=own_ns) if late else event

    return History(in_order(event) for event in history)


def _began_between(task: TaskChanged, failure: JobEvent, ran: JobRunning) -> bool:
    """Whether a task was deployed after the failure and observed running by then. An observation of
    the running job proves nothing: its poll may have begun before the failure."""
    return (
        _same_job(task, failure)
        and task.at_ns <= ran.at_ns
        and task.state == "RUNNING"
        and task.deployed_ms >= (stamp_ms(failure) or 0)
    )


def _same_job(one: JobEvent, other: JobEvent) -> bool:
    return one.job == other.job
