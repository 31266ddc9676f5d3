"""The faults of a run, each with the part of the history that shows its failover.

Each fault is judged separately, from its call until the next one's. If its failover was not over by
then, the restarts of the two cannot be distinguished: both are judged together. A failure long
after the heal and the failover is not attributed to the fault: it and later events belong to no
failover.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from streamquake.harness.verdict.evidence.affected_subtasks import (
    affected_subtasks_of,
    changes_width,
    must_end_tasks,
    orders_restart,
    tasks_on_its_nodes,
    tasks_within_reach,
    unplaced_subtasks,
)
from streamquake.harness.verdict.evidence.late_observations import in_engine_order
from streamquake.harness.verdict.evidence.restores import is_failure
from streamquake.harness.verdict.evidence.task_restarts import (
    OVER,
    Subtask,
    SubtaskHistory,
    restarts_of_subtasks,
)
from streamquake.harness.verdict.evidence.unattributed_failure import SETTLED_S, first_unattributed
from streamquake.reports.record.checkpoint_events import (
    CheckpointCompleted,
    CheckpointEvent,
    CheckpointTriggered,
)
from streamquake.reports.record.event import Event
from streamquake.reports.record.fault_events import (
    FaultEndedEarly,
    FaultHealed,
    FaultInEffect,
    HealCalled,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    FAILURES,
    ExecutorLost,
    JobEnded,
    JobEvent,
    JobFailing,
    JobRunning,
    JobSubmitted,
    TaskChanged,
)
from streamquake.reports.record.metrics import Samples

SEEN_BEFORE_S = 2.0
"""How long before its failure the end of a task may be observed."""


def failures_of(history: History) -> list[JobEvent]:
    """The failures that an engine reports, including the failed end of a job: of a job that the
    engine no longer knows that is the only event."""
    return [event for event in history.of(*FAILURES, JobEnded) if is_failure(event)]


@dataclass(frozen=True, kw_only=True)
class Failover:
    """Faults that are judged together."""

    faults: tuple[FaultInEffect, ...]
    """Their `fault in effect` events, in the order of the calls."""
    earlier: tuple[FaultInEffect, ...]
    """The faults called before these."""
    history: History
    """The history until its end; without the events of tasks that no longer existed when the
    failover began: those of a replaced job, or from before a rescale."""
    end_ns: int | None
    """When the next fault was called, or a failure followed that is not attributed to its faults;
    None where there is neither."""
    rescaled: bool
    """Whether the job was rescaled, so that its numbers of subtasks may differ from its graph."""

    @property
    def start_ns(self) -> int:
        return self.faults[0].start_ns

    @property
    def last_called_ns(self) -> int:
        """When the last of its faults was called."""
        return self.faults[-1].start_ns

    @property
    def fault_names(self) -> str:
        return ", ".join(fault_name(fault) for fault in self.faults)

    @property
    def task_ending_faults(self) -> tuple[FaultInEffect, ...]:
        """Those of its faults that must end every task of their nodes."""
        return tuple(fault for fault in self.faults if must_end_tasks(fault))

    @property
    def submitted(self) -> JobSubmitted | None:
        """The newest `job submitted` before it began, else the first."""
        graphs = self.history.of(JobSubmitted)
        before = [graph for graph in graphs if graph.at_ns <= self.start_ns]
        return next(iter(before[-1:] or graphs), None)

    def known_tasks(self) -> set[tuple[str, int]]:
        """Each subtask of the submitted jobs, by the name of its task."""
        planned = {
            (str(vertex.get("name")), subtask)
            for graph in self.history.of(JobSubmitted)
            for vertex in graph.vertices
            for subtask in range(vertex["parallelism"])
        }
        return planned | {(e.name, e.subtask) for e in self.history.of(TaskChanged)}

    @property
    def only_ordered(self) -> bool:
        """Whether every restart was ordered: nothing failed."""
        failed = self.history.first(JobFailing, after_ns=self.start_ns)
        return failed is None and all(orders_restart(fault) for fault in self.faults)

    @property
    def restart_ordered(self) -> bool:
        """Whether a restart of the job was ordered within it, with any subtasks."""
        steps = {fault.step for fault in self.active_faults if changes_width(fault)}
        healed = {event.step for event in self.history.of(HealCalled)}
        return bool(steps & healed) or any(orders_restart(fault) for fault in self.faults)

    def samples(self, running: Mapping[str, Samples]) -> Mapping[str, Samples]:
        """The samples of the running times until its end."""
        if self.end_ns is None:
            return running
        return {place: _until_then(each, self.end_ns) for place, each in running.items()}

    def restarts_of_subtasks(self, running: Mapping[str, Samples]) -> dict[Subtask, SubtaskHistory]:
        """The history of each subtask; `running` as in `restarts_of_subtasks`."""
        return restarts_of_subtasks(self.history, self.start_ns, running, self.end_ns)

    def last_restart_ns(self, found: Mapping[Subtask, SubtaskHistory]) -> int:
        """When the last failure, or the last new attempt of a subtask, was observed; the moment at
        which it began where there is none. Where another fault followed, samples since then may be
        missing: then the moment at which it began."""
        if self.end_ns is not None:
            return self.start_ns
        failed = (event.at_ns for event in failures_of(self.history))
        again = (task.attempts[-1][0].at_ns for task in found.values() if task.attempts)
        return max([self.start_ns, *failed, *again])

    def affected_subtasks(self, without: Collection[FaultInEffect] = ()) -> set[Subtask]:
        """The subtasks that its faults affected, `without` some of them."""
        faults = self.task_ending_faults or self.faults
        return _affected_by((each for each in faults if each not in without), self.history)

    def unplaced_subtasks(self) -> set[Subtask]:
        """The subtasks that its faults may have affected: on which node they ran is not known."""
        return _unplaced_by(self.task_ending_faults or self.faults, self.history)

    @property
    def active_faults(self) -> tuple[FaultInEffect, ...]:
        """The earlier faults that were not over when it began."""
        return tuple(f for f in self.earlier if not _over_by(f, self.history, self.start_ns))

    @property
    def recent_faults(self) -> tuple[FaultInEffect, ...]:
        """The earlier faults that were not over, or not for long, when it began: effects may appear
        late, such as after a time-out."""
        since_ns = self.start_ns - round(SETTLED_S * 1e9)
        return tuple(f for f in self.earlier if not _over_by(f, self.history, since_ns))

    def endangered_subtasks(self) -> set[Subtask]:
        """The subtasks that ran, when it began, on nodes of earlier faults that were not over."""
        return {
            place
            for fault in self.active_faults
            if must_end_tasks(fault)
            for place in tasks_within_reach(fault, self.history, self.start_ns)
        }

    def ambiguous_faults(self, places: Set[Subtask]) -> tuple[FaultInEffect, ...]:
        """The faults that may have ended all of these subtasks, since it is not known which tasks
        they end: of its own faults if there are several, and of the recent ones."""
        own = self.faults if len(self.faults) > 1 else ()
        return tuple(
            fault
            for fault in (*self.recent_faults, *own)
            if places
            and not (must_end_tasks(fault) and affected_subtasks_of(fault, self.history))
            and not places & self._ended_by(fault.start_ns)
        )

    def restarted_early(self, reach: Callable[[Set[Subtask]], Set[Subtask]]) -> set[Subtask]:
        """The subtasks that restarted before the call of a fault, out of the `reach` of the faults
        before it."""
        early: set[Subtask] = set()
        for number, following in enumerate(self.faults[1:], 1):
            affected = _affected_by(self.faults[:number], self.history)
            affected |= _unplaced_by(self.faults[:number], self.history)
            reached = reach(affected | self.endangered_subtasks())
            early |= self._ended_by(following.start_ns) - reached
        return early

    def until(self, end_ns: int) -> Failover:
        """The same faults, judged until a moment."""
        return replace(self, history=_until(self.history, end_ns), end_ns=end_ns)

    def _ended_by(self, at_ns: int) -> set[Subtask]:
        """The subtasks that ended, or had another attempt, by a moment."""
        found = restarts_of_subtasks(_until(self.history, at_ns), self.start_ns)
        return {place for place, task in found.items() if task.restarted}


def fault_name(injected: FaultInEffect) -> str:
    """The name of the fault of a `fault in effect`, and its index in the experiment."""
    return f"{injected.fault or 'fault'} (faults[{injected.step}])"


def failovers(history: History, over: Callable[[Failover], bool]) -> Iterator[Failover]:
    """The failovers of all faults that took effect. `over` decides whether a failover is complete
    in its history, so that the next fault begins another."""
    injected = sorted(history.of(FaultInEffect), key=lambda fault: fault.start_ns)
    first = 0
    for number in range(1, len(injected) + 1):
        end_ns = injected[number].start_ns if number < len(injected) else None
        part = history if end_ns is None else _until(history, end_ns)
        without_obsolete, rescaled = _without_obsolete_tasks(
            part, injected[:first], injected[first].start_ns
        )
        found = Failover(
            faults=tuple(injected[first:number]),
            earlier=tuple(injected[:first]),
            history=without_obsolete,
            end_ns=end_ns,
            rescaled=rescaled,
        )
        found = _until_unrelated_failure(found, over)
        if end_ns is None or over(found):
            yield found
            first = number


def _until_unrelated_failure(failover: Failover, over: Callable[[Failover], bool]) -> Failover:
    """The failover until the first failure that is not attributed to its faults: all had been
    healed, and it was over, long before."""
    history = failover.history
    reported = [event.at_ns for event in (*failures_of(history), *history.of(ExecutorLost))]
    failures_ns = sorted(at_ns for at_ns in reported if at_ns > failover.last_called_ns)
    faults = (*failover.active_faults, *failover.faults)

    def was_back(at_ns: int, _: int) -> bool:
        since = failover.until(at_ns)
        return all(_over_by(fault, since.history, at_ns) for fault in faults) and over(since)

    failure_ns = first_unattributed(failures_ns, was_back)
    if failure_ns is None:
        return failover
    return failover.until(failure_ns - round(SEEN_BEFORE_S * 1e9))


def _without_obsolete_tasks(
    history: History, earlier: Iterable[FaultInEffect], at_ns: int
) -> tuple[History, bool]:
    """The history without the events of tasks that no longer existed at a moment (of a replaced
    job, or from before a rescale), and whether the job was rescaled by then."""
    graphs = [graph for graph in history.of(JobSubmitted) if graph.at_ns <= at_ns]
    replaced = {g.job for g in graphs} - {g.job for g in graphs[-1:]}
    changed = [event for event in history.of(TaskChanged) if event.at_ns <= at_ns]
    newest = {event.place: event for event in changed}
    seen_ns = max((event.at_ns for event in changed), default=0)
    orders = [at for at in _width_orders(history, earlier, at_ns) if at < seen_ns]
    since_ns = max((at for at in orders if not graphs or at > graphs[-1].at_ns), default=None)

    def obsolete(event: Event) -> bool:
        if not isinstance(event, TaskChanged):
            return False
        if event.job in replaced:
            return True
        if since_ns is None or event.at_ns > at_ns:
            return False
        return event.at_ns <= since_ns or newest[event.place].state in (*OVER, "FINISHED")

    return History(event for event in history if not obsolete(event)), since_ns is not None


def _width_orders(
    history: History, earlier: Iterable[FaultInEffect], until_ns: int
) -> Iterator[int]:
    """When the job was ordered to rescale, or to scale back."""
    changing = [fault for fault in earlier if changes_width(fault)]
    steps = {fault.step for fault in changing}
    yield from (fault.start_ns for fault in changing)
    for event in history.of(HealCalled):
        if event.step in steps and event.at_ns <= until_ns:
            yield event.at_ns


def is_over_by_tasks(failover: Failover, running: Mapping[str, Samples]) -> bool:
    """Whether all affected subtasks restarted and all tasks ran again, or nothing had to
    restart."""
    restarted = {
        place for place, task in failover.restarts_of_subtasks(running).items() if task.restarted
    }
    failed = failover.history.first(*FAILURES, after_ns=failover.start_ns)
    if not restarted and failed is None:
        ordered = any(orders_restart(fault) for fault in failover.faults)
        return affects_no_task(failover) and not ordered
    affected = _affected_by(failover.task_ending_faults, failover.history)
    return affected <= restarted and all_tasks_ran_again(failover.history, failover.start_ns)


def is_over_by_batches(failover: Failover) -> bool:
    """Whether a micro-batch completed that began after all of its faults were in effect."""
    since_ns = max(fault.at_ns for fault in failover.faults)

    def later(kind: type[CheckpointEvent]) -> set[int]:
        recorded = failover.history.of(kind)
        return {each.checkpoint for each in recorded if each.at_ns > since_ns}

    return bool(later(CheckpointTriggered) & later(CheckpointCompleted))


def affects_no_task(failover: Failover) -> bool:
    """Whether none of its faults ends tasks, or no task ran where they were injected."""
    return not any(
        tasks_on_its_nodes(fault, failover.history) or unplaced_subtasks(fault, failover.history)
        for fault in failover.task_ending_faults
    )


def all_tasks_ran_again(history: History, effect_ns: int) -> bool:
    """Whether every task ran after the last failure, and after a first restart."""
    failures = [event.at_ns for event in failures_of(in_engine_order(history))]
    changed = history.first(TaskChanged, after_ns=effect_ns + 1)
    since_ns = max([effect_ns, *failures, *([changed.at_ns] if changed else [])])
    return history.first(JobRunning, after_ns=since_ns) is not None


def unnoticed_fault(failover: Failover) -> FaultInEffect | None:
    """The first of several faults that was over without a failure when the next one was called:
    either may have caused a later restart."""
    may_end = [fault for fault in failover.faults if _may_end_tasks(fault, failover.history)]
    for fault, following in itertools.pairwise(may_end):
        start_ns, end_ns = fault.start_ns, following.start_ns
        seen = _until(failover.history, end_ns)
        affected = must_end_tasks(fault) and affected_subtasks_of(fault, failover.history)
        failed = seen.first(*FAILURES, after_ns=start_ns) is not None
        restarted = any(task.restarted for task in restarts_of_subtasks(seen, start_ns).values())
        if affected and not (failed or restarted) and _over_by(fault, seen, end_ns):
            return fault
    return None


def _may_end_tasks(fault: FaultInEffect, history: History) -> bool:
    """Whether the fault must end tasks, orders a restart, or has a node on which a task ran."""
    recorded = must_end_tasks(fault) or orders_restart(fault)
    return recorded or bool(tasks_within_reach(fault, history, fault.start_ns))


def _affected_by(faults: Iterable[FaultInEffect], history: History) -> set[Subtask]:
    return {place for fault in faults for place in affected_subtasks_of(fault, history)}


def _unplaced_by(faults: Iterable[FaultInEffect], history: History) -> set[Subtask]:
    return {place for fault in faults for place in unplaced_subtasks(fault, history)}


def _until(history: History, end_ns: int) -> History:
    return History(event for event in history if event.at_ns <= end_ns)


def _until_then(samples: Samples, end_ns: int) -> Samples:
    selected = samples.at_s <= end_ns / 1e9
    return Samples(at_s=samples.at_s[selected], value=samples.value[selected])


def _over_by(fault: FaultInEffect, history: History, at_ns: int) -> bool:
    """Whether the fault was healed, or had ended early, by a moment."""
    return any(
        event.step == fault.step and fault.at_ns <= event.at_ns <= at_ns
        for event in history.of(FaultHealed, FaultEndedEarly)
    )
