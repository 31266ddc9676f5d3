"""Restores as a history records them: each restart of a job, its restored checkpoint, its phases.

A restart begins with the first failure or restart that the engine reports, and ends when every task
runs again; a failure after state was assigned begins another restart. A job that replaces another
one is a restart too, from the other's end. Moments are the engine's own stamps where it has them,
since polling may observe two events in the wrong order. A checkpoint that was triggered after a
failure, and completed, proves that every task ran in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from streamquake.harness.verdict.evidence.engine_clock import STAMP_NS, EngineClock, clock_moved
from streamquake.harness.verdict.evidence.job_return import ran_by_ns
from streamquake.harness.verdict.evidence.restore_stamps import contradicted_stamps
from streamquake.harness.verdict.evidence.running_contradictions import running_contradiction
from streamquake.harness.verdict.evidence.waits import failed_waits
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event import Event
from streamquake.reports.record.fault_events import FaultCalled, FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    FAILURES,
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

STEPS = (*FAILURES, JobRestored, JobRunning, JobEnded)
FAILED = ("FAILED", "LOST")
"""The ends of a job that were not requested."""
RESTART_JOB = "restart_job"
"""The fault that replaces a job by another one."""


def is_failure(event: Event) -> bool:
    """Whether an engine's report about a job is a failure; a requested end is none."""
    return not isinstance(event, JobEnded) or event.state in FAILED


@dataclass(frozen=True, kw_only=True)
class JobReplacement:
    """A `restart_job`: one job ends, and the next one is submitted from the state of the first."""

    at_s: float
    kept_state: str | None = None
    """The kind of state that the ended job keeps, as in the fault's `from`; None where it is not
    recorded."""
    restored_from: str = ""
    """The path of that state, by the fault's evidence; empty where it has none."""

    @property
    def savepoint(self) -> bool:
        return self.kept_state != "checkpoint"


@dataclass(frozen=True, kw_only=True)
class Restart:
    """One restart of a job; seconds on the run's clock, None for a moment that was not observed."""

    job: Any
    broke_s: float
    cause: str = ""
    submitted: bool = False
    """Whether it is the job's first start, from a given savepoint or checkpoint."""
    replaced_s: float | None = None
    """When the replaced job had ended; None where there was none."""
    ordered_s: float | None = None
    """When the end of the replaced job was ordered."""
    injected_at_s: float | None = None
    """When the last fault before it was verified in effect."""
    restored_s: float | None = None
    checkpoint: int | None = None
    """The number of the restored checkpoint."""
    path: str = ""
    """The path of the restored checkpoint."""
    set_back_first: tuple[int, ...] = ()
    """The checkpoints that it restored before, without another failure in between."""
    parallelism: int | None = None
    """Subtasks of its widest vertex; None where the job's graph was not recorded."""
    former: Any = None
    """The replaced job; None where there was none."""
    former_parallelism: int | None = None
    """The parallelism of the replaced job."""
    order: JobReplacement | None = None
    """The order to replace that job; None where it is not recorded."""
    failed: str = ""
    """Why the job never ran again, in the engine's words; empty where it did, or where it is not
    known."""
    written: int = 0
    """Committed records that were observed after it began and failed."""
    running_s: float | None = None
    initializing_ms: float | None = None
    """How long the slowest new attempt restored its state."""
    slowest: str = ""
    """The subtask of the slowest attempt, as vertex name/subtask."""
    contradiction: str = ""
    """Why the moment of its restore, or the one when it ran again, is not known; empty where it
    is."""

    @property
    def where(self) -> str:
        return f"{'start' if self.submitted else 'restart'} at {self.broke_s:.1f} s"

    @property
    def phases(self) -> Mapping[str, float | None]:
        """Seconds of each phase: `detect_s` from the fault's effect to its detection, or `end_s`
        from the order to end the replaced job to its end and `submit_s` to the submission of the
        new one; `until_restored_s` to the restore, `until_running_s` until every task ran.
        `restart_s` is how long no job had all tasks running."""
        since_s = self.broke_s if self.replaced_s is None else self.replaced_s
        return {
            "detect_s": None
            if self.submitted
            else _seconds_between(self.injected_at_s, self.broke_s),
            "end_s": _seconds_between(self.ordered_s, self.replaced_s),
            "submit_s": _seconds_between(self.replaced_s, self.broke_s),
            "until_restored_s": _seconds_between(self.broke_s, self.restored_s),
            "until_running_s": _seconds_between(self.restored_s, self.running_s),
            "restart_s": _seconds_between(since_s, self.running_s),
        }


@dataclass
class _RestartEvents:
    """The events of one restart while they are collected."""

    first: bool = False
    """Whether the job's tasks had never all run before."""
    breaks: list[JobFailing | JobRestarting] = field(default_factory=list)
    restored: JobRestored | None = None
    restored_first: list[JobRestored] = field(default_factory=list)
    """Restores that another restore followed."""
    running: JobRunning | None = None
    ended: JobEnded | None = None
    """The end of the job, if it ended instead of running."""
    ran_unseen: bool = False
    """Whether only a checkpoint shows that the job ran before it failed again: neither its restore
    nor its running tasks were seen."""


def restarts_of(history: History) -> tuple[Restart, ...]:
    """Every restart of every job, in order, and every first start that restored state or replaced
    another job."""
    clock = EngineClock(history)
    wrong = contradicted_stamps(history, clock)
    found = []
    for job in dict.fromkeys(event.job for event in history.of(*STEPS)):
        own = [_as_observed(e) if e.index in wrong else e for e in history.of(*STEPS)]
        own = [*(e for e in own if e.job == job), *_proofs_of_running(history, job)]
        own.sort(key=lambda event: _step_ns(event, clock))
        collected = _collect_events(own, replacement=_former(history, job) is not None)
        for steps, following in zip_longest(collected, collected[1:]):
            until_ns = _broke_ns(history, clock, job, following) if following else None
            restart = _restart_of(history, clock, job, steps, until_ns)
            stamp = wrong.get(steps.restored.index) if steps.restored else None
            found.append(replace(restart, contradiction=stamp or restart.contradiction))
    found.sort(key=lambda restart: restart.broke_s)
    return tuple(_with_failure(restart, history, restart is found[-1]) for restart in found)


def _as_observed(event: JobEvent) -> JobEvent:
    """A restore without its stamp, at its observation."""
    return replace(event, value={**event.value, JobRestored.restored_at_ms.name: None})


def _proofs_of_running(history: History, job: Any) -> Iterator[CheckpointCompleted]:
    """The completed checkpoints of a job that are known to have been triggered while all of its
    tasks ran; none where a fault moved the clocks."""
    if clock_moved(history):
        return
    for event in history.of(CheckpointCompleted):
        if event.job == job and event.trigger_ms and not event.is_micro_batch:
            yield event


def _step_ns(event: JobEvent, clock: EngineClock) -> int:
    """The moment of a step; of a checkpoint, a moment at which every task had begun to run."""
    if isinstance(event, CheckpointCompleted):
        return clock.stamped_ns(event, event.trigger_ms) - STAMP_NS
    return clock.moment_ns(event)


def _collect_events(steps: Sequence[JobEvent], replacement: bool) -> list[_RestartEvents]:
    """The events of each restart of a job; `replacement` is whether the job replaced another.
    `JobRunning` may be observed late: a restore after it without another failure still belongs to
    the restart that has no restore yet."""
    found: list[_RestartEvents] = []
    under_way, ran = False, False
    for event in steps:
        if isinstance(event, FAILURES):
            if not under_way or found[-1].restored is not None:
                found.append(_RestartEvents(first=replacement and not ran))
            found[-1].breaks.append(event)
            under_way = True
        elif isinstance(event, JobEnded):
            if is_failure(event):
                if not under_way:
                    found.append(_RestartEvents(first=replacement and not ran))
                found[-1].ended = event
                under_way = True
        elif isinstance(event, JobRestored):
            if not found or (not under_way and _belongs_to_next(event, found[-1])):
                found.append(_RestartEvents(first=not ran))
            if (former := found[-1].restored) is not None:
                found[-1].restored_first.append(former)
            found[-1].restored, found[-1].running, found[-1].ran_unseen = event, None, False
            under_way = True
        elif isinstance(event, CheckpointCompleted):
            if under_way and found[-1].breaks and found[-1].restored is None:
                found[-1].ran_unseen, under_way, ran = True, False, True
        elif isinstance(event, JobRunning):
            if replacement and not found:
                found.append(_RestartEvents(first=True))
            under_way, ran = False, True
            for restart in found:  # also restarts that failed again before all tasks ran
                if restart is found[-1] or not restart.ran_unseen:
                    restart.running = restart.running or event
    return found


def _belongs_to_next(restored: JobRestored, steps: _RestartEvents) -> bool:
    """Whether a restore, while the job ran, is of a restart whose failure was not seen. A
    checkpoint shows by its stamp that the job ran; a restore without one may be from before it."""
    if steps.restored is not None:
        return True
    return steps.ran_unseen and restored.restored_at_ms is not None


def _restart_of(
    history: History, clock: EngineClock, job: Any, steps: _RestartEvents, until_ns: int | None
) -> Restart:
    """`until_ns` is when the next restart began; None without one."""
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
        failed=_end_reason(steps, causes),
        parallelism=_max_parallelism(_graph(history, job)),
        running_s=_ran_s(history, steps),
        contradiction=running_contradiction(history, clock, steps.running, broke_ns, until_ns)
        if steps.running
        else "",
    )
    if restart.submitted:
        restart = _with_former(restart, history, clock)
    return _with_attempts(restart, history, broke_ns, steps.running)


def _ran_s(history: History, steps: _RestartEvents) -> float | None:
    """When every task ran again, which may have been observed later."""
    if steps.running is None:
        return None
    if not steps.breaks:
        return steps.running.at_s
    return ran_by_ns(history, steps.breaks[-1], steps.running) / 1e9


def _end_reason(steps: _RestartEvents, causes: Sequence[str]) -> str:
    """Why the job ended instead of running."""
    if steps.ended is None:
        return ""
    causes = [steps.ended.cause or "", *reversed(causes)]
    return next(filter(None, causes), f"the job is {steps.ended.state}")


def _with_former(restart: Restart, history: History, clock: EngineClock) -> Restart:
    """The first start of a job with the facts about the job that it replaced."""
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
        order=_replacement_order(history, restart),
        replaced_s=None if replaced_ns is None else replaced_ns / 1e9,
        ordered_s=orders[-1] if orders else None,
        former_parallelism=_max_parallelism(_graph(history, former)),
    )


def _replacement_order(history: History, restart: Restart) -> JobReplacement | None:
    """The newest call of a `restart_job` before a job was submitted, with the state that it gave
    the job."""
    calls = [
        call
        for call in history.of(FaultCalled)
        if call.fault == RESTART_JOB and call.at_s <= restart.broke_s
    ]
    if not calls:
        return None
    params = calls[-1].params
    kept_state = None if params is None else params.get("from", "checkpoint")
    return JobReplacement(
        at_s=calls[-1].at_s,
        kept_state=kept_state,
        restored_from=_restored_from(history, restart.job),
    )


def _restored_from(history: History, job: Any) -> str:
    """The path of the state that a job was given and, by the fault's evidence, restored from."""
    samples = (
        each
        for effect in history.of(FaultInEffect)
        if effect.fault == RESTART_JOB
        for each in (effect.evidence or {}).values()
        if isinstance(each, Mapping) and each.get("job") == job and each.get("restored_from")
    )
    return next((str(each["restored_from"]) for each in samples), "")


def _former(history: History, job: Any) -> Any:
    """The job that this job replaced; None for the first of a run."""
    jobs = list(dict.fromkeys(graph.job for graph in history.of(JobSubmitted)))
    return jobs[jobs.index(job) - 1] if job in jobs[1:] else None


def _with_failure(restart: Restart, history: History, last: bool) -> Restart:
    """The restart with the reason why it never ran; for the last restart also the run's failed
    wait."""
    waits = failed_waits(history)
    failed = restart.failed
    if last and not failed and restart.running_s is None and waits:
        failed = restart.cause or waits[0].reason or "it did not recover"
    if not failed:
        return restart
    graph = _graph(history, restart.job) if restart.submitted else None
    seen_ns = int(restart.broke_s * 1e9) if graph is None else graph.at_ns
    grown = [e.grown or 0 for e in history.of(OutputSeen) if e.at_ns > seen_ns]
    return replace(restart, failed=failed, written=sum(grown))


def _graph(history: History, job: Any) -> JobSubmitted | None:
    """The `job submitted` event of a job."""
    graphs = history.of(JobSubmitted)
    return next((graph for graph in graphs if graph.job == job), None)


def _max_parallelism(graph: JobSubmitted | None) -> int | None:
    vertices = graph.vertices if graph else ()
    return max((vertex["parallelism"] for vertex in vertices), default=None)


def _broke_ns(history: History, clock: EngineClock, job: Any, steps: _RestartEvents) -> int:
    """When a restart began: at its failure; a first start when the job was submitted; without an
    observed failure at the restore."""
    recorded = (*steps.breaks, steps.restored, steps.ended, steps.running)
    first = next(step for step in recorded if step)
    began_ns = clock.moment_ns(first)
    graph = _graph(history, job) if steps.first else None
    return began_ns if graph is None else min(began_ns, clock.moment_ns(graph))


def _injected_s(history: History, broke_ns: int) -> float | None:
    """When the last fault before a failure was verified in effect; if the failure was detected
    sooner, the detection took zero seconds."""
    injected = [effect for effect in history.of(FaultInEffect) if effect.start_ns <= broke_ns]
    return min(injected[-1].seen_ns, broke_ns) / 1e9 if injected else None


def _with_attempts(
    restart: Restart, history: History, broke_ns: int, running: JobRunning | None
) -> Restart:
    """The restart with its slowest new attempt, from the failure until all tasks were observed to
    run."""
    attempts = [
        event
        for event in history.of(TaskChanged)
        if event.job == restart.job
        and event.state == "RUNNING"
        and event.initializing_ms is not None
        and broke_ns <= event.at_ns
        and (running is None or event.at_ns <= running.at_ns)
    ]
    if not attempts:
        return restart
    slowest = max(attempts, key=lambda event: event.initializing_ms or 0)
    where = f"{slowest.name}/{slowest.subtask}"
    return replace(restart, initializing_ms=slowest.initializing_ms, slowest=where)


def _seconds_between(begin_s: float | None, end_s: float | None) -> float | None:
    return None if begin_s is None or end_s is None else round(max(0.0, end_s - begin_s), 3)
