"""Failover scope: which subtasks restarted, compared with which had to.

The prediction comes from the job's graph and from whom the faults hit: the subtasks on a node whose
process was killed or whose machine fell silent, or the one in which an exception was thrown. What
did restart is read from each subtask's attempts, their start times and nodes, and from how long it
has been running; the job's state and restart counters change for any region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.affected_subtasks import nodes_of
from streamquake.harness.verdict.evidence.attempts import KINDS, RepeatedTasks, repeats_after
from streamquake.harness.verdict.evidence.blast_radius import RegionGraph
from streamquake.harness.verdict.evidence.failovers import (
    FAILURES,
    Failover,
    batches_are_over,
    failovers,
    fault_name,
    hit_nothing,
    ran_whole_again,
    tasks_are_over,
    unnoticed,
)
from streamquake.harness.verdict.evidence.task_restarts import (
    RUNNING,
    Subtask,
    SubtaskHistory,
    watch_ended,
)
from streamquake.reports.record.fault_events import FaultHealed, FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    JobFailing,
    JobRestarting,
    JobRunning,
    JobSubmitted,
    TaskAttempt,
    TaskChanged,
)
from streamquake.reports.record.metrics import Samples, by_series, read_metrics
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome

LOOKS = (TaskChanged, JobRunning, JobRestarting, JobFailing)
"""What only an observation of the job's tasks shows."""


@checks.register
class FailoverScope(Check):
    """Held when exactly the predicted subtasks restarted, no more and no fewer.

    Each of several faults is judged by itself, as far as its failover was over before the next.
    """

    name: ClassVar[str] = "failover_scope"
    classes: ClassVar[tuple[str, ...]] = (
        "batch run again whole",
        "repeated for lost shuffle output",
        "failed",
        "restarted",
        "predicted",
        "global failure",
        "node changed",
        "ended",
        "duration fell",
    )

    expect: Literal["task", "region", "job"]
    """How far a failure may spread: the failed subtasks, their regions, or the whole job."""

    def check(self, case: JudgedRun) -> CheckResult:
        injected = case.history.of(FaultInEffect)
        if injected and case.history.first(TaskAttempt) is not None:
            batches = tuple(failovers(case.history, batches_are_over))
            busy = [each for each in batches if self.expect == "job" or _repeats(each).kind]
            return self._together(batches, busy, self._judged_by_attempts)
        graphs = case.history.of(JobSubmitted)
        if not injected or not graphs or any(graph.regions is None for graph in graphs):
            return self.undecided("no fault took effect, or the job's graph was not seen")
        running = by_series(read_metrics(case.metrics)).get(RUNNING, {})
        found = tuple(failovers(case.history, partial(tasks_are_over, running=running)))
        conclusive = [each for each in found if not self._inconclusive(each, running)]
        return self._together(found, conclusive, partial(self._judged_by_restarts, running=running))

    def _together(
        self,
        found: Sequence[Failover],
        conclusive: Sequence[Failover],
        judge: Callable[[Failover], CheckResult],
    ) -> CheckResult:
        """Of those that show anything, else of all, the first violated, else the first undecided;
        held only where all are."""
        results = [(failover, judge(failover)) for failover in conclusive or found]
        if len(found) == 1:
            return results[0][1]
        recorded = [
            replace(result, summary=f"{failover.named}: {result.summary}")
            for failover, result in results
        ]
        decisive = max(recorded, key=lambda result: result.outcome)
        if decisive.outcome != Outcome.HELD:
            return decisive
        widest = max(recorded, key=lambda result: result.counts["blast_radius"] or 0)
        others = [
            f"{each.named}: "
            + ("the job was ordered to restart" if each.as_ordered else "it hit no task")
            for each in found
            if each not in conclusive
        ]
        return replace(widest, summary="; ".join([*(each.summary for each in recorded), *others]))

    def _inconclusive(self, failover: Failover, running: Mapping[str, Samples]) -> bool:
        """Whether it neither shows nor refutes anything beside other faults: no task ran on its
        targets, and nothing restarted, or the whole job where that is expected; or the job was
        ordered to restart."""
        if failover.as_ordered:
            return True
        restarted = {task.restarted for task in failover.restarts_of_subtasks(running).values()}
        as_expected = True not in restarted or (self.expect == "job" and False not in restarted)
        return as_expected and hit_nothing(failover)

    def _judged_by_attempts(self, failover: Failover) -> CheckResult:
        """The same of tasks of one batch: their attempts show it."""
        found = _repeats(failover)
        if failover.history.first(TaskAttempt, after_ns=failover.last_ns + 1) is None:
            return self.undecided("no task was seen to end after the fault took effect")
        if found.kind is None:
            return self.undecided(
                f"nothing was repeated: no task was under way on {_nodes(failover)}"
            )
        counts: dict[str, Any] = {
            "repeated": found.count,
            "hit": len(found.hit),
            "shuffle_lost": len(found.shuffle),
            "unexplained": len(found.unexplained),
            "batches_repeated": len(found.batches),
            "all": found.tasks,
            "blast_radius": round(found.count / found.tasks, 3) if found.tasks else None,
        }
        message = (
            f"{len(found.hit)} attempts lost with their executor, {len(found.shuffle)} tasks "
            f"repeated for lost shuffle output, {len(found.batches)} batches run again whole; "
            f"recognised as {found.kind}, {self.expect} predicted"
        )
        wider = KINDS.index(found.kind) > KINDS.index(self.expect)
        narrower = self.expect == "job" and found.kind != "job"
        # A failure that ends the batch itself may show in its tasks in any way.
        strange = {} if self.expect == "job" else found.unexplained
        if not (wider or narrower or strange):
            return self._held_by_attempts(found, message, counts)
        repeated = found.shuffle if wider else {}
        wrong = (
            *(Finding(what="batch run again whole", where=f"batch {n}") for n in found.batches),
            *(_attempt("repeated for lost shuffle output", e) for e in repeated.values()),
            *(_attempt("failed, not predicted", e) for e in strange.values()),
        )
        return self.violated(message, wrong, **counts)

    def _held_by_attempts(
        self, found: RepeatedTasks, message: str, counts: Mapping[str, Any]
    ) -> CheckResult:
        """Held, unless the record lacks attempts that would show what was repeated."""
        if found.unfinished:
            return self.undecided(
                f"{message}; {len(found.unfinished)} lost tasks were not seen to succeed, nor "
                f"their batch to complete, the first: {_where(found.unfinished[0])}",
                **counts,
            )
        if found.unheard:
            return self.undecided(
                f"{message}; of {len(found.unheard)} repeated attempts the earlier ones of the "
                f"same task were not seen, the first: {_where(found.unheard[0])}",
                **counts,
            )
        return self.held(message, **counts)

    def _judged_by_restarts(
        self, failover: Failover, running: Mapping[str, Samples]
    ) -> CheckResult:
        """What the attempts of its subtasks show of a failover."""
        if (submitted := failover.submitted) is None:
            return self.undecided("the job's graph was not seen before the next fault")
        found, graph = failover.restarts_of_subtasks(running), RegionGraph.of(submitted)
        if not failover.ending and not any(task.restarted for task in found.values()):
            return self.undecided("nothing restarted, and no fault was one that ends tasks")
        victims = failover.victims()
        if not victims & set(found):
            return self.undecided(f"no subtask is known to have been hit on {_nodes(failover)}")
        if not _was_watched(failover.history, failover.start_ns, running):
            return self.undecided("the job's tasks were not observed after the fault took effect")
        unlike = graph.unlike(found) if failover.rescaled or set(found) - graph.all else None
        if unlike is not None:
            if self.expect != "job" or not all(task.restarted for task in found.values()):
                return self.undecided(f"the job was rescaled since its graph was seen: {unlike}")
            graph = RegionGraph([found])
        result = self._judged(failover, graph, found, victims)
        reason = self._not_known(failover, graph, found, running)
        if result.outcome != Outcome.HELD or reason is None:
            return result
        summary = f"{result.summary}; {reason}"
        return replace(result, outcome=Outcome.UNDECIDED, summary=summary)

    def _not_known(
        self,
        failover: Failover,
        graph: RegionGraph,
        found: Mapping[Subtask, SubtaskHistory],
        running: Mapping[str, Samples],
    ) -> str | None:
        """What is missing to show that a failover was as predicted; None where nothing is."""
        if unseen := sorted(graph.all - set(found)):
            vertex, number = unseen[0]
            return (
                f"{len(unseen)} subtasks of the job were not seen before the fault, the first: "
                f"{vertex} ({number}), so that it is not known whether they restarted"
            )
        if ended := watch_ended(found.values(), failover.samples(running), failover.start_ns):
            return (
                f"how long {len(ended)} of the others have been running was not seen any more "
                f"after the fault, the first: {ended[0].name} ({ended[0].subtask})"
            )
        if self.expect != "job" and (fault := unnoticed(failover)) is not None:
            return (
                f"nothing had failed when {fault_name(fault)} was over and the next fault was "
                "called, so that it is not known which of the two caused the restarts"
            )
        return None

    def _judged(
        self,
        failover: Failover,
        graph: RegionGraph,
        found: Mapping[Subtask, SubtaskHistory],
        victims: Set[Subtask],
    ) -> CheckResult:
        history, effect_ns = failover.history, failover.start_ns
        restarted = {place for place, task in found.items() if task.restarted}
        predicted = graph.reach(self.expect, victims)
        # An earlier fault that still acts may end what runs on its nodes at any time.
        allowed = graph.reach(self.expect, victims | failover.endangered())
        causes = [
            str(event.cause)
            for event in history.of(JobFailing)
            if event.at_ns >= effect_ns and event.task is None
        ]
        wrong = (
            *_findings(restarted - allowed, found, "restarted, not predicted"),
            *_findings(predicted - restarted, found, "predicted, not restarted"),
            *(Finding(what="global failure", detail={"cause": cause}) for cause in causes),
        )
        counts = _counts(found, restarted, predicted, victims, len(causes))
        kind = graph.kind(victims, restarted) or "none of task, downstream, region, job"
        message = (
            f"{len(restarted)} of {len(found)} subtasks restarted, {len(predicted)} predicted "
            f"({self.expect}); recognised as {kind if restarted else 'no failover'}"
        )
        if causes and self.expect != "job":
            message += f"; {len(causes)} global failures, the first: {causes[0]}"
        missing = predicted - restarted - (graph.all - set(found))
        if why := _left_open(failover, restarted - allowed, missing):
            return self.undecided(f"{message}; {why}", wrong, **counts)
        started = restarted or history.first(*FAILURES, after_ns=effect_ns) is not None
        if restarted <= allowed and started and not ran_whole_again(history, effect_ns):
            message += "; the job was not seen to run whole again, so more may have had to"
            return self.undecided(message, wrong, **counts)
        # Of what was not seen before the fault it is not known whether it restarted.
        if restarted <= allowed and not missing:
            return self.held(message, **counts)
        if not restarted and (why := _not_detected(history, effect_ns)) is not None:
            message += f"; {why}"
        return self.violated(message, wrong, **counts)


def _left_open(failover: Failover, more: Set[Subtask], missing: Set[Subtask]) -> str | None:
    """Why it is open whether restarts beside the predicted, or those missing, are wrong."""
    if missing:
        reordered = "the job was ordered to restart meanwhile, perhaps with other subtasks"
        return reordered if failover.reordered else None
    unsure = ", ".join(fault_name(fault) for fault in failover.unsure(more))
    return f"it is not known what of that was because of {unsure}" if unsure else None


def _repeats(failover: Failover) -> RepeatedTasks:
    """What was repeated; an executor may be lost by an earlier fault that was not over."""
    faults = (*failover.acting, *failover.faults)
    nodes = {node for fault in faults for node in nodes_of(fault)}
    return repeats_after(failover.history, failover.start_ns, nodes)


def _attempt(what: str, attempt: TaskAttempt) -> Finding:
    return Finding(what=what, where=_where(attempt), detail=attempt.value)


def _where(attempt: TaskAttempt) -> str:
    return f"batch {attempt.batch}, stage {attempt.stage}, task {attempt.task}"


def _counts(
    found: Mapping[Subtask, SubtaskHistory],
    restarted: Set[Subtask],
    predicted: Set[Subtask],
    victims: Set[Subtask],
    global_failures: int,
) -> dict[str, Any]:
    """A subtask that restarted several times is one of `restarted`; `restarts` has every time."""
    survivors = [task for task in found.values() if not task.restarted]
    return {
        "restarted": len(restarted),
        "predicted": len(predicted),
        "all": len(found),
        "victims": len(victims),
        "blast_radius": round(len(restarted) / len(found), 3),
        "restarts": sum(max(1, found[place].restarts) for place in restarted),
        "global_failures": global_failures,
        "survivors": len(survivors),
        "survivors_watched": sum(task.watched for task in survivors),
    }


def _was_watched(history: History, effect_ns: int, running: Mapping[str, Samples]) -> bool:
    """Whether the tasks were sampled after the fault."""
    checked = history.first(*LOOKS, after_ns=effect_ns + 1) is not None
    return checked or any(float(s.at_s[-1]) * 1e9 > effect_ns for s in running.values())


def _not_detected(history: History, effect_ns: int) -> str | None:
    """That the engine never noticed, where it did not; and how soon the fault was healed."""
    if history.first(*FAILURES, after_ns=effect_ns) is not None:
        return None
    healed = history.first(FaultHealed, after_ns=effect_ns)
    if healed is None:
        return "the failure was never detected"
    gone_s = (healed.at_ns - effect_ns) / 1e9
    return f"the failure was never detected: the fault was healed after {gone_s:.1f} s"


def _findings(
    places: Iterable[Subtask], found: Mapping[Subtask, SubtaskHistory], what: str
) -> Iterable[Finding]:
    for vertex, number in sorted(places):
        task = found.get((vertex, number))
        if task is None:
            yield Finding(what=what, where=f"{vertex} ({number})")
            continue
        before = {key: task.before.value.get(key) for key in ("attempt", "start_ms", "node")}
        detail = {**task.last.value, "before": before}
        if task.watched:
            detail |= {"running_ms_before": task.before_ms, "running_ms": task.after_ms}
        yield Finding(what=task.sign or what, where=f"{task.name} ({number})", detail=detail)


def _nodes(failover: Failover) -> str:
    return ", ".join(node for fault in failover.faults for node in fault.nodes or ())
