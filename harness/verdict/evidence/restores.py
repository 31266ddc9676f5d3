"""Restores as a history records them: each restart of a job, what it was set back to, its phases.

A restart begins with the first failure or restart that the engine reports, and ends when every task
runs again; a failure after state was handed out begins another one. A job that takes the place of
another is a restart too, from the other's end. Moments are the engine's own stamps where it gives
them: of two events seen by asking again and again, the later one may be seen first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from streamquake.harness.verdict.evidence.engine_clock import EngineClock, clock_moved
from streamquake.harness.verdict.evidence.waits import failed_waits
from streamquake.reports.record.checkpoint_events import CheckpointTriggered
from streamquake.reports.record.event import Event
from streamquake.reports.record.fault_events import FaultCalled, FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    JobEnded,
    JobEvent,
    JobFailing,
    JobRestarting,
    JobRestored,
    JobRunning,
    JobSubmitted,
    TaskChanged,
)
from streamquake.reports.record.run_events import OutputSeen

BREAKS = (JobFailing, JobRestarting)
STEPS = (*BREAKS, JobRestored, JobRunning, JobEnded)
FAILED = ("FAILED", "LOST")
"""The ends of a job that were not asked for."""
RESTART_JOB = "restart_job"
"""The fault that has one job take another's place."""


def is_failure(event: Event) -> bool:
    """Whether what an engine reports of a job is a failure; of ends, only those not asked for."""
    return not isinstance(event, JobEnded) or event.state in FAILED


@dataclass(frozen=True, kw_only=True)
class JobReplacement:
    """A `restart_job`: one job ended, the next one submitted from the state of the first."""

    at_s: float
    keeping: str | None = None
    """What the ended job was to leave, as in the fault's `from`; None where that is not
    recorded."""
    given: str = ""
    """Where that lies, as the fault's evidence has it; empty where it does not have it."""

    @property
    def savepoint(self) -> bool:
        return self.keeping != "checkpoint"


@dataclass(frozen=True, kw_only=True)
class Restart:
    """One restart of a job; seconds on the run's clock, None for what was not seen."""

    job: Any
    broke_s: float
    cause: str = ""
    submitted: bool = False
    """Whether it is the job's first start, from a savepoint or checkpoint it was given."""
    replaced_s: float | None = None
    """When the job whose place it took had ended; None where there was none."""
    ordered_s: float | None = None
    """When that job's end was ordered."""
    injected_at_s: float | None = None
    """When the last fault before it was seen in effect."""
    restored_s: float | None = None
    checkpoint: int | None = None
    """What it was set back to."""
    path: str = ""
    """Where that lies."""
    set_back_first: tuple[int, ...] = ()
    """What it was set back to before that, without another failure in between."""
    triggered_s: float | None = None
    """When the checkpoint that it was set back to was triggered first; None where that is not
    recorded, or where a fault moved the clocks."""
    parallelism: int | None = None
    """Subtasks of its widest vertex; None where the job's graph was not seen."""
    former: Any = None
    """The job whose place it took; None where there was none."""
    former_parallelism: int | None = None
    """The same of that job."""
    order: JobReplacement | None = None
    """What had that job replaced; None where that is not recorded."""
    failed: str = ""
    """Why it never came to run, in the engine's words; nothing where it did, or where it is not
    known."""
    written: int = 0
    """Committed records that were seen to come after it began and failed."""
    running_s: float | None = None
    initializing_ms: float | None = None
    """How long the slowest new attempt restored its state."""
    slowest: str = ""
    """Whose that is, as vertex name/subtask."""

    @property
    def where(self) -> str:
        return f"{'start' if self.submitted else 'restart'} at {self.broke_s:.1f} s"

    @property
    def phases(self) -> Mapping[str, float | None]:
        """Seconds each phase took: from the fault's effect until it was noticed, or from the order
        to end the job before it until that had ended and until the new one was submitted; until
        state was handed out, until every task ran. `restart_s` is how long no job ran whole."""
        since_s = self.broke_s if self.replaced_s is None else self.replaced_s
        return {
            "detect_s": None if self.submitted else _between(self.injected_at_s, self.broke_s),
            "end_s": _between(self.ordered_s, self.replaced_s),
            "submit_s": _between(self.replaced_s, self.broke_s),
            "until_restored_s": _between(self.broke_s, self.restored_s),
            "until_running_s": _between(self.restored_s, self.running_s),
            "restart_s": _between(since_s, self.running_s),
        }


@dataclass
class _RestartEvents:
    """The steps of one restart while they are gathered."""

    first: bool = False
    """Whether the job did not run whole before."""
    breaks: list[JobFailing | JobRestarting] = field(default_factory=list)
    restored: JobRestored | None = None
    restored_first: list[JobRestored] = field(default_factory=list)
    """Restores that another one followed."""
    running: JobRunning | None = None
    ended: JobEnded | None = None
    """The end that it came to instead of running."""


def restarts_of(history: History) -> tuple[Restart, ...]:
    """Every restart of every job, in order, and every first start that restored something or took
    the place of another job."""
    clock = EngineClock(history)
    found = []
    for job in dict.fromkeys(event.job for event in history.of(*STEPS)):
        own = [event for event in history.of(*STEPS) if event.job == job]
        own.sort(key=clock.moment_ns)
        gathered = _gathered(own, anew=_former(history, job) is not None)
        found += [_described(history, clock, job, steps) for steps in gathered]
    found.sort(key=lambda restart: restart.broke_s)
    return tuple(_never_back(restart, history, restart is found[-1]) for restart in found)


def _gathered(steps: Sequence[JobEvent], anew: bool) -> list[_RestartEvents]:
    """The steps of each restart of a job, which took another's place where it is `anew`. That all
    tasks run is seen late: a restore that follows it without another break still belongs to the
    restart that has none yet."""
    found: list[_RestartEvents] = []
    under_way, ran = False, False
    for event in steps:
        if isinstance(event, BREAKS):
            if not under_way or found[-1].restored is not None:
                found.append(_RestartEvents(first=anew and not ran))
            found[-1].breaks.append(event)
            under_way = True
        elif isinstance(event, JobEnded):
            if is_failure(event):
                if not under_way:
                    found.append(_RestartEvents(first=anew and not ran))
                found[-1].ended = event
                under_way = True
        elif isinstance(event, JobRestored):
            if not found or (found[-1].restored is not None and not under_way):
                found.append(_RestartEvents(first=not ran))
            if (former := found[-1].restored) is not None:
                found[-1].restored_first.append(former)
            found[-1].restored, found[-1].running = event, None
            under_way = True
        elif isinstance(event, JobRunning):
            if anew and not found:
                found.append(_RestartEvents(first=True))
            under_way, ran = False, True
            for restart in found:  # also those that failed again before all tasks ran
                restart.running = restart.running or event
    return found


def _described(history: History, clock: EngineClock, job: Any, steps: _RestartEvents) -> Restart:
    causes = [e.cause or "" for e in steps.breaks if isinstance(e, JobFailing)]
    restart = Restart(
        job=job,
        broke_s=(broke_ns := _broke_ns(history, clock, job, steps)) / 1e9,
        cause=causes[0] if causes else "",
        submitted=steps.first,
        injected_at_s=_injected_s(history, broke_ns),
        restored_s=clock.moment_ns(steps.restored) / 1e9 if steps.restored else None,
        checkpoint=steps.restored.checkpoint if steps.restored else None,
        path=(steps.restored.path or "") if steps.restored else "",
        set_back_first=tuple(event.checkpoint for event in steps.restored_first),
        triggered_s=_triggered_s(history, clock, steps.restored),
        failed=_end_of(steps, causes),
        parallelism=_widest(_graph(history, job)),
        running_s=steps.running.at_s if steps.running else None,
    )
    if restart.submitted:
        restart = _with_former(restart, history, clock)
    return _with_attempts(restart, history, broke_ns)


def _triggered_s(
    history: History, clock: EngineClock, restored: JobRestored | None
) -> float | None:
    if restored is None or clock_moved(history):
        return None
    moments = [
        clock.moment_ns(event) / 1e9
        for event in history.of(CheckpointTriggered)
        if event.checkpoint == restored.checkpoint
    ]
    return min(moments, default=None)


def _end_of(steps: _RestartEvents, causes: Sequence[str]) -> str:
    """Why the job ended instead of running."""
    if steps.ended is None:
        return ""
    causes = [steps.ended.cause or "", *reversed(causes)]
    return next(filter(None, causes), f"the job is {steps.ended.state}")


def _with_former(restart: Restart, history: History, clock: EngineClock) -> Restart:
    """The first start of a job with what is known of the one whose place it took."""
    if (former := _former(history, restart.job)) is None:
        return restart
    ends = [end for end in history.of(JobEnded) if end.job == former]
    replaced_ns = clock.moment_ns(ends[0]) if ends else None
    orders = [
        order.at_s
        for order in history.of(FaultCalled)
        if order.target == "the job" and replaced_ns is not None and order.at_ns <= replaced_ns
    ]
    return replace(
        restart,
        former=former,
        order=_order(history, restart),
        replaced_s=None if replaced_ns is None else replaced_ns / 1e9,
        ordered_s=orders[-1] if orders else None,
        former_parallelism=_widest(_graph(history, former)),
    )


def _order(history: History, restart: Restart) -> JobReplacement | None:
    """The newest call of a `restart_job` before a job was submitted, with what it gave that job."""
    calls = [
        call
        for call in history.of(FaultCalled)
        if call.fault == RESTART_JOB and call.at_s <= restart.broke_s
    ]
    if not calls:
        return None
    params = calls[-1].params
    keeping = None if params is None else params.get("from", "checkpoint")
    return JobReplacement(at_s=calls[-1].at_s, keeping=keeping, given=_given(history, restart.job))


def _given(history: History, job: Any) -> str:
    """Where the state lies that a job was given and, by the fault's evidence, restored from."""
    seen = (
        each
        for effect in history.of(FaultInEffect)
        if effect.fault == RESTART_JOB
        for each in (effect.evidence or {}).values()
        if isinstance(each, Mapping) and each.get("job") == job and each.get("restored_from")
    )
    return next((str(each["restored_from"]) for each in seen), "")


def same_place(one: str, other: str) -> bool:
    """Whether two addresses name the same place, also where one leaves out the file system."""
    return urlsplit(one).path == urlsplit(other).path


def _former(history: History, job: Any) -> Any:
    """The job whose place another took; None for the first of a run."""
    jobs = list(dict.fromkeys(graph.job for graph in history.of(JobSubmitted)))
    return jobs[jobs.index(job) - 1] if job in jobs[1:] else None


def _never_back(restart: Restart, history: History, last: bool) -> Restart:
    """The restart with why it never ran: of the last one also what the run had to give up on."""
    stuck = failed_waits(history)
    failed = restart.failed
    if last and not failed and restart.running_s is None and stuck:
        failed = restart.cause or stuck[0].reason or "it did not recover"
    if not failed:
        return restart
    graph = _graph(history, restart.job) if restart.submitted else None
    seen_ns = int(restart.broke_s * 1e9) if graph is None else graph.at_ns
    grown = [e.grown or 0 for e in history.of(OutputSeen) if e.at_ns > seen_ns]
    return replace(restart, failed=failed, written=sum(grown))


def _graph(history: History, job: Any) -> JobSubmitted | None:
    """What was recorded of a job when it was submitted."""
    graphs = history.of(JobSubmitted)
    return next((graph for graph in graphs if graph.job == job), None)


def _widest(graph: JobSubmitted | None) -> int | None:
    vertices = graph.vertices if graph else ()
    return max((vertex["parallelism"] for vertex in vertices), default=None)


def _broke_ns(history: History, clock: EngineClock, job: Any, steps: _RestartEvents) -> int:
    """When a restart began: a first start when the job was submitted, one whose break was not seen
    when it was restored."""
    recorded = (*steps.breaks, steps.restored, steps.ended, steps.running)
    first = next(step for step in recorded if step)
    began_ns = clock.moment_ns(first)
    graph = _graph(history, job) if steps.first else None
    return began_ns if graph is None else min(began_ns, clock.moment_ns(graph))


def _injected_s(history: History, broke_ns: int) -> float | None:
    """When the last fault before a break was seen in effect; a break that was noticed sooner than
    the fault's effect was seen took no time to notice."""
    injected = [effect for effect in history.of(FaultInEffect) if effect.start_ns <= broke_ns]
    return min(injected[-1].seen_ns, broke_ns) / 1e9 if injected else None


def _with_attempts(restart: Restart, history: History, broke_ns: int) -> Restart:
    """The restart with what its new attempts show, from the break until all of them run."""
    attempts = [
        event
        for event in history.of(TaskChanged)
        if event.job == restart.job
        and event.state == "RUNNING"
        and event.initializing_ms is not None
        and broke_ns <= event.at_ns
        and (restart.running_s is None or event.at_s <= restart.running_s)
    ]
    if not attempts:
        return restart
    slowest = max(attempts, key=lambda event: event.initializing_ms or 0)
    where = f"{slowest.name}/{slowest.subtask}"
    return replace(restart, initializing_ms=slowest.initializing_ms, slowest=where)


def _between(begin_s: float | None, end_s: float | None) -> float | None:
    return None if begin_s is None or end_s is None else round(max(0.0, end_s - begin_s), 3)
