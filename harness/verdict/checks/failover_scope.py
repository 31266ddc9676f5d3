"""Failover scope: which subtasks restarted, compared with those that had to.

The prediction follows from the job's graph and the affected subtasks: those on a node whose process
was killed or whose machine was unreachable, or the one in which an exception was thrown. The
attempts of each subtask, their start times and nodes, and its running time show which ones
restarted. The job's state and restart counters do not: they change for any region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, ClassVar, Literal

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.affected_subtasks import named_in_failures, nodes_of
from streamquake.harness.verdict.evidence.attempts import KINDS, RepeatedTasks, repeats_after
from streamquake.harness.verdict.evidence.blast_radius import RegionGraph
from streamquake.harness.verdict.evidence.brief_silences import BriefSilence, brief_silences
from streamquake.harness.verdict.evidence.called_nodes import effect_elsewhere
from streamquake.harness.verdict.evidence.down_by_itself import (
    down_by_itself_since_ns,
    down_message,
)
from streamquake.harness.verdict.evidence.early_deployments import deployed_before
from streamquake.harness.verdict.evidence.failovers import (
    SEEN_BEFORE_S,
    Failover,
    affects_no_task,
    all_tasks_ran_again,
    failovers,
    fault_name,
    is_over_by_batches,
    is_over_by_tasks,
    unnoticed_fault,
)
from streamquake.harness.verdict.evidence.late_observations import in_engine_order
from streamquake.harness.verdict.evidence.lost_sandboxes import losses_of_network
from streamquake.harness.verdict.evidence.task_restarts import (
    RAN,
    RUNNING,
    Subtask,
    SubtaskHistory,
    survivors_unsampled,
)
from streamquake.harness.verdict.evidence.unattributed_failure import SETTLED_S
from streamquake.harness.verdict.evidence.unexplained_ends import ended_from_outside, how
from streamquake.harness.verdict.evidence.unobserved_restarts import (
    skipped_attempts,
    unobserved_restarts,
)
from streamquake.harness.verdict.evidence.waits import failed_waits
from streamquake.reports.record.fault_events import FaultHealed, FaultInEffect
from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    FAILURES,
    JobFailing,
    JobRestarting,
    JobRunning,
    JobSubmitted,
    TaskAttempt,
    TaskChanged,
)
from streamquake.reports.record.metrics import Samples, by_series, read_metrics
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.run_events import RunDrained

TASK_EVENTS = (TaskChanged, JobRunning, JobRestarting, JobFailing)
"""Events that prove that the job's tasks were observed."""


@checks.register
class FailoverScope(Check):
    """Held when exactly the predicted subtasks restarted, no more and no fewer.

    Each of several faults is judged separately, if its failover was over before the next one. A
    failure long after the failover and the heal does not count. Undecided where a node lost its
    process by a signal, its memory or its sandbox, which no fault did, during the failover or
    up to 30 s before it, where the job was down by itself when a fault was called, where the
    run was interrupted before anything failed, where a fault is recorded as called and in
    effect on different nodes, where a node was silent for less than `heartbeat.timeout` and its
    tasks did not restart, where a fault that need not end tasks, or had none, was over for less
    than 30 s and more restarted, where more may have had to restart, since the nodes of some
    subtasks are not recorded, where a restarted subtask was not seen to run again, where the
    others were not sampled until then, where a failure is recorded that would have restarted
    another subtask or names none of the job, where a subtask goes back to an earlier state in
    the same attempt, where a new attempt was deployed before the fault, where the job's graph
    contradicts itself or lacks a subtask that was seen, and where more restarts were counted
    than observed, or a subtask skipped more attempts than there were restarts.
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
            batches = tuple(failovers(case.history, is_over_by_batches))
            busy = [each for each in batches if self.expect == "job" or _repeats(each).kind]
            return self._combine(case.history, batches, busy, self._judge_by_attempts)
        graphs = case.history.of(JobSubmitted)
        if not injected or not graphs or any(graph.regions is None for graph in graphs):
            return self.undecided("no fault took effect, or the job's graph was not seen")
        running = by_series(read_metrics(case.metrics)).get(RUNNING, {})
        found = tuple(failovers(case.history, partial(is_over_by_tasks, running=running)))
        conclusive = [each for each in found if not self._inconclusive(each, running)]
        brief = tuple(brief_silences(injected, case.history, case.experiment.topology))
        judge = partial(self._judge_by_restarts, running=running, brief=brief)
        return self._combine(case.history, found, conclusive, judge)

    def _combine(
        self,
        whole: History,
        found: Sequence[Failover],
        conclusive: Sequence[Failover],
        judge: Callable[[Failover], CheckResult],
    ) -> CheckResult:
        """The combined result of the conclusive failovers, or of all if there are none: the first
        violated one, else the first undecided one; held only where all are held."""
        results = [
            (failover, _with_doubts(judge(failover), failover, whole, judge))
            for failover in conclusive or found
        ]
        if len(found) == 1:
            return results[0][1]
        recorded = [
            replace(result, summary=f"{failover.fault_names}: {result.summary}")
            for failover, result in results
        ]
        decisive = max(recorded, key=lambda result: result.outcome)
        if decisive.outcome != Outcome.HELD:
            return decisive
        widest = max(recorded, key=lambda result: result.counts["blast_radius"] or 0)
        others = [
            f"{each.fault_names}: "
            + ("the job was ordered to restart" if each.only_ordered else "it affected no task")
            for each in found
            if each not in conclusive
        ]
        return replace(widest, summary="; ".join([*(each.summary for each in recorded), *others]))

    def _inconclusive(self, failover: Failover, running: Mapping[str, Samples]) -> bool:
        """Whether it proves nothing beside other faults: no task ran on its targets, and nothing
        restarted, or the whole job as expected; or the job was ordered to restart."""
        if failover.only_ordered:
            return True
        restarted = {task.restarted for task in failover.restarts_of_subtasks(running).values()}
        as_expected = True not in restarted or (self.expect == "job" and False not in restarted)
        return as_expected and affects_no_task(failover)

    def _judge_by_attempts(self, failover: Failover) -> CheckResult:
        """The result by the attempts of tasks of micro-batches."""
        found = _repeats(failover)
        if failover.history.first(TaskAttempt, after_ns=failover.last_called_ns + 1) is None:
            return self.undecided("no task was seen to end after the fault took effect")
        if found.kind is None:
            return self.undecided(
                f"nothing was repeated: no task was under way on {_nodes(failover)}"
            )
        counts: dict[str, Any] = {
            "repeated": found.count,
            "hit": len(found.affected),
            "shuffle_lost": len(found.shuffle),
            "unexplained": len(found.unexplained),
            "batches_repeated": len(found.batches),
            "all": found.tasks,
            "blast_radius": round(found.count / found.tasks, 3) if found.tasks else None,
        }
        message = (
            f"{len(found.affected)} attempts lost with their executor, {len(found.shuffle)} tasks "
            f"repeated for lost shuffle output, {len(found.batches)} batches run again whole; "
            f"recognised as {found.kind}, {self.expect} predicted"
        )
        wider = KINDS.index(found.kind) > KINDS.index(self.expect)
        narrower = self.expect == "job" and found.kind != "job"
        # When the batch itself fails, its tasks may fail in any way.
        unexpected = {} if self.expect == "job" else found.unexplained
        if not (wider or narrower or unexpected):
            return self._held_by_attempts(found, message, counts)
        repeated = found.shuffle if wider else {}
        wrong = (
            *(Finding(what="batch run again whole", where=f"batch {n}") for n in found.batches),
            *(_attempt("repeated for lost shuffle output", e) for e in repeated.values()),
            *(_attempt("failed, not predicted", e) for e in unexpected.values()),
        )
        return self.violated(message, wrong, **counts)

    def _held_by_attempts(
        self, found: RepeatedTasks, message: str, counts: Mapping[str, Any]
    ) -> CheckResult:
        """Held, unless the record lacks attempts that would prove it."""
        if found.unfinished:
            return self.undecided(
                f"{message}; {len(found.unfinished)} lost tasks were not seen to succeed, nor "
                f"their batch to complete, the first: {_where(found.unfinished[0])}",
                **counts,
            )
        if found.without_earlier:
            return self.undecided(
                f"{message}; of {len(found.without_earlier)} repeated attempts the earlier ones of "
                f"the same task were not seen, the first: {_where(found.without_earlier[0])}",
                **counts,
            )
        return self.held(message, **counts)

    def _judge_by_restarts(
        self, failover: Failover, running: Mapping[str, Samples], brief: Sequence[BriefSilence]
    ) -> CheckResult:
        """The result by the attempts of the job's subtasks. `brief` are the faults of the run that
        the engine need not have noticed."""
        if (submitted := failover.submitted) is None:
            return self.undecided("the job's graph was not seen before the next fault")
        found, graph = failover.restarts_of_subtasks(running), RegionGraph.of(submitted)
        if not failover.task_ending_faults and not any(task.restarted for task in found.values()):
            return self.undecided("nothing restarted, and no fault was one that ends tasks")
        affected = failover.affected_subtasks()
        if not affected & set(found):
            return self.undecided(
                f"no subtask is known to have been affected on {_nodes(failover)}"
            )
        if not _was_watched(failover.history, failover.start_ns, running):
            return self.undecided("the job's tasks were not observed after the fault took effect")
        difference = (
            graph.width_difference(found)
            if failover.rescaled or set(found) - graph.all_subtasks
            else None
        )
        if difference is not None:
            if self.expect != "job" or not all(task.restarted for task in found.values()):
                return self.undecided(
                    f"the job was rescaled since its graph was seen: {difference}"
                )
            graph = RegionGraph([found])
        result = self._judge(failover, graph, found, brief)
        reason = self._missing_evidence(failover, graph, found, running)
        if result.outcome != Outcome.HELD or reason is None:
            return result
        summary = f"{result.summary}; {reason}"
        return replace(result, outcome=Outcome.UNDECIDED, summary=summary)

    def _missing_evidence(
        self,
        failover: Failover,
        graph: RegionGraph,
        found: Mapping[Subtask, SubtaskHistory],
        running: Mapping[str, Samples],
    ) -> str | None:
        """The missing evidence that a failover was as predicted, or what contradicts it; None where
        there is neither."""
        if unseen := sorted(graph.all_subtasks - set(found)):
            vertex, number = unseen[0]
            return (
                f"{len(unseen)} subtasks of the job were not seen before the fault, the first: "
                f"{vertex} ({number}), so that it is not known whether they restarted"
            )
        if unsampled := _unsampled(failover, found, running):
            return unsampled
        affected, unplaced = failover.affected_subtasks(), failover.unplaced_subtasks()
        predicted = graph.reach(self.expect, affected)
        if more := graph.reach(self.expect, affected | unplaced) - predicted:
            return (
                f"the nodes of {len(unplaced)} subtasks are not recorded, so that it is not known "
                f"whether {len(more)} more had to restart"
            )
        if contradiction := graph.contradiction or _unknown_subtask(failover, graph, found):
            return contradiction
        if contradiction := _contradiction(failover, found):
            return contradiction
        if self.expect != "job" and (fault := unnoticed_fault(failover)) is not None:
            return (
                f"nothing had failed when {fault_name(fault)} was over and the next fault was "
                "called, so that it is not known which of the two caused the restarts"
            )
        return None

    def _judge(
        self,
        failover: Failover,
        graph: RegionGraph,
        found: Mapping[Subtask, SubtaskHistory],
        brief: Sequence[BriefSilence],
    ) -> CheckResult:
        history, effect_ns = failover.history, failover.start_ns
        affected = failover.affected_subtasks()
        restarted = {place for place, task in found.items() if task.restarted}
        predicted = graph.reach(self.expect, affected)
        # An earlier fault that still acts may end tasks on its nodes at any time.
        endangered = failover.endangered_subtasks() | failover.unplaced_subtasks()
        allowed = graph.reach(self.expect, affected | endangered)
        early = failover.restarted_early(partial(graph.reach, self.expect))
        more = (restarted - allowed) | early
        causes = _global_failures(failover)
        wrong = (
            *_findings(more, found, "restarted, not predicted"),
            *_findings(predicted - restarted, found, "predicted, not restarted"),
            *(Finding(what="global failure", detail={"cause": cause}) for cause in causes),
        )
        counts = _counts(found, restarted, predicted, affected, len(causes))
        kind = graph.kind(affected, restarted) or "none of task, downstream, region, job"
        message = (
            f"{len(restarted)} of {len(found)} subtasks restarted, {len(predicted)} predicted "
            f"({self.expect}); recognised as {kind if restarted else 'no failover'}"
        )
        if early:
            message += f"; {len(early)} restarted before the fault that had to end them"
        if causes and self.expect != "job":
            message += f"; {len(causes)} global failures, the first: {causes[0]}"
        missing = predicted - restarted - (graph.all_subtasks - set(found))
        brief = [each for each in brief if each.fault in failover.faults]
        noticed = failover.affected_subtasks(without=[each.fault for each in brief])
        certain = missing & graph.reach(self.expect, noticed)
        if why := _ambiguity(failover, more, missing, certain, brief):
            return self.undecided(f"{message}; {why}", wrong, **counts)
        started = restarted or history.first(*FAILURES, after_ns=effect_ns) is not None
        if not more and started and not all_tasks_ran_again(history, effect_ns):
            message += (
                "; not every task was seen to run again, so more subtasks may have had to restart"
            )
            return self.undecided(message, wrong, **counts)
        # Subtasks that were not observed before the fault may have restarted.
        if not more and not missing:
            return self.held(message, **counts)
        if not restarted and (why := _not_detected(history, effect_ns)) is not None:
            message += f"; {why}"
        return self.violated(message, wrong, **counts)


def _unknown_subtask(
    failover: Failover, graph: RegionGraph, found: Mapping[Subtask, SubtaskHistory]
) -> str | None:
    """A message where a subtask was seen that the job does not have, although not all of it
    restarted, which may change its parallelism; else None."""
    if all(task.restarted for task in found.values()):
        return None
    for event in failover.history.of(TaskChanged):
        if event.place not in graph.all_subtasks and event.place not in found:
            return (
                f"{event.name} ({event.subtask}) was seen, which is no subtask of the job's graph"
            )
    return None


def _unsampled(
    failover: Failover,
    found: Mapping[Subtask, SubtaskHistory],
    running: Mapping[str, Samples],
) -> str | None:
    """A message if the running times of survivors were not sampled until the others had restarted;
    else None. A task that has finished has none any more."""
    samples = failover.samples(running)
    unfinished = [task for task in found.values() if task.last.state != "FINISHED"]
    for tasks, after_ns, moment in (
        (found.values(), failover.start_ns, "the fault"),
        (unfinished, failover.last_restart_ns(found), "the last restart"),
    ):
        if ended := survivors_unsampled(tasks, samples, after_ns):
            return (
                f"the running times of {len(ended)} others were not sampled after {moment}, the "
                f"first: {ended[0].name} ({ended[0].subtask})"
            )
    return None


def _contradiction(failover: Failover, found: Mapping[Subtask, SubtaskHistory]) -> str | None:
    """What contradicts that the subtasks which restarted are all of them, and run again; None where
    nothing does."""
    for task in found.values():
        if task.restarted and task.last.state not in RAN:
            return f"{task.name} ({task.subtask}) was not seen to run again"
    survivors = [task for task in found.values() if not task.restarted]
    for task in survivors:
        if task.set_back is not None:
            earlier, later = task.set_back
            return (
                f"{task.name} ({task.subtask}) is recorded as {earlier}, and then as {later} in "
                "the same attempt"
            )
    if early := deployed_before(found.values(), failover.history, failover.start_ns):
        return early
    if (unknown := _unknown_failure(failover)) is not None:
        return f"a failure of {unknown} is recorded, which is no task of the job"
    restarted = {(task.name, task.subtask) for task in found.values() if task.restarted}
    for _, *failed in named_in_failures(failover.history, failover.start_ns):
        for task in survivors:
            if [task.name, task.subtask] == failed and tuple(failed) not in restarted:
                return f"{task.name} ({task.subtask}) is recorded as failed, and not as restarted"
    if survivors and _global_failures(failover):
        return "a global failure is recorded, which restarts every subtask"
    history, since_ns = failover.history, failover.start_ns
    missed = (
        *skipped_attempts(found.values(), history, since_ns),
        *unobserved_restarts(history, since_ns),
    )
    return next(iter(missed), None)


def _unknown_failure(failover: Failover) -> str | None:
    """The task that a failure names and the job does not have; None without any."""
    known = failover.known_tasks()
    named = {
        event.index: (name, subtask)
        for event, name, subtask in named_in_failures(failover.history, failover.start_ns)
    }
    for event in failover.history.of(JobFailing):
        failed = named.get(event.index)
        if not event.task or event.at_ns < failover.start_ns or failed in known:
            continue
        if failed is None or any(failed[0] == name for name, _ in known):
            return f"the task {event.task!r}"
        return failed[0]
    return None


def _global_failures(failover: Failover) -> list[str]:
    """The causes of failures of the whole job."""
    failures = failover.history.of(JobFailing)
    late = [event for event in failures if event.at_ns >= failover.start_ns]
    return [str(event.cause) for event in late if event.task is None]


def _ambiguity(
    failover: Failover,
    more: Set[Subtask],
    missing: Set[Subtask],
    certain: Set[Subtask],
    brief: Iterable[BriefSilence],
) -> str | None:
    """Why unpredicted or missing restarts may not be wrong; None where they are. `certain` are the
    missing ones that a fault must have caused which is not `brief`."""
    if certain:
        reordered = "the job was ordered to restart meanwhile, perhaps with other subtasks"
        return reordered if failover.restart_ordered else None
    unsure = ", ".join(fault_name(fault) for fault in failover.ambiguous_faults(more))
    if more and not unsure:
        return None
    reasons = [
        f"{fault_name(each.fault)} acted for {each.acted_s:.1f} s, and a silent node need not be "
        f"noticed within {each.lost_after_s:g} s"
        for each in (brief if missing else ())
    ]
    if unsure:
        reasons.append(f"it is not known which of these restarts {unsure} caused")
    return "; ".join(reasons) or None


def _with_doubts(
    result: CheckResult,
    failover: Failover,
    whole: History,
    judge: Callable[[Failover], CheckResult],
) -> CheckResult:
    """The result of a failover; undecided where not only its faults may explain it."""
    doubt = (
        _down_before(failover, whole)
        or _failed_before(failover, whole)
        or _effect_elsewhere(failover, whole)
        or _lost_node(result, failover, whole, judge)
        or _unverified_fault(result, failover, whole)
        or _interruption(result, failover, whole)
    )
    if doubt is None or result.outcome == Outcome.UNDECIDED:
        return result
    return replace(result, outcome=Outcome.UNDECIDED, summary=f"{result.summary}; {doubt}")


def _down_before(failover: Failover, whole: History) -> str | None:
    """A message if the job was down by itself when the first of the faults was called: its restart
    cannot be distinguished from theirs; else None."""
    failed_ns = down_by_itself_since_ns(whole, failover.start_ns)
    return None if failed_ns is None else down_message(failed_ns)


def _failed_before(failover: Failover, whole: History) -> str | None:
    """A message if a failure that was observed after the call of the first fault is from before it
    by the engine's own stamp: restarts may be the earlier failure's; else None."""
    called_ns = failover.start_ns
    for seen, own in zip(whole, in_engine_order(whole), strict=True):
        if own.at_ns < called_ns <= seen.at_ns:
            return f"the job had failed {(called_ns - own.at_ns) / 1e9:.1f} s before the call"
    return None


def _effect_elsewhere(failover: Failover, whole: History) -> str | None:
    """A message if a fault was in effect on other nodes than those it was called on: then it is not
    known which tasks it affected; else None."""
    found = effect_elsewhere((*failover.active_faults, *failover.faults), whole)
    if found is None:
        return None
    fault, call = found
    return (
        f"{fault_name(fault)} was called on {', '.join(call.nodes or ())} and in effect on "
        f"{', '.join(fault.nodes or ())}"
    )


def _unverified_fault(result: CheckResult, failover: Failover, whole: History) -> str | None:
    """A message if restarts are not as predicted and another fault was called meanwhile, or shortly
    before on nodes of these subtasks, whose effect was not verified: a part of it may have been in
    effect; else None."""
    until_ns = inf if failover.end_ns is None else failover.end_ns
    wrong = _nodes_of_findings(result)
    for each in fault_windows(whole):
        called_ns = each.called_s * 1e9
        during = failover.start_ns <= called_ns < until_ns
        before = 0 < failover.start_ns - called_ns <= SETTLED_S * 1e9
        matters = during or (before and not wrong.isdisjoint(each.nodes))
        if result.outcome == Outcome.VIOLATED and matters and not each.acted:
            return f"{each.fault} was called at {each.called_s:.1f} s, and its effect not verified"
    return None


def _lost_node(
    result: CheckResult,
    failover: Failover,
    whole: History,
    judge: Callable[[Failover], CheckResult],
) -> str | None:
    """A message if a node lost its process or its network, which no fault caused, and that may
    explain the restarts; else None. It may if they are as predicted and a task ran on its node,
    during the failover or shortly before: the engine may notice late. If they are not as predicted,
    it may during the failover, and shortly before where subtasks of its node are not as
    predicted."""
    until_ns = inf if failover.end_ns is None else failover.end_ns
    nodes = {event.node for event in whole.of(TaskChanged)}
    nodes |= {event.node for event in whole.of(TaskAttempt)}
    wrong = _nodes_of_findings(result)
    losses = [
        *((each, f"the sandbox of {each.node} ended") for each in losses_of_network(whole)),
        *((each, how(each)) for each in ended_from_outside(whole)),
    ]
    for lost, what in losses:
        during = failover.start_ns <= lost.at_ns < until_ns
        before = 0 < failover.start_ns - lost.at_ns <= SETTLED_S * 1e9
        if during:
            earlier = failover.until(lost.at_ns - round(SEEN_BEFORE_S * 1e9))
            # What came out the same before that has another cause.
            during = not _same_result(judge(earlier), result)
        if result.outcome == Outcome.VIOLATED:
            matters = during
        else:
            matters = (during or before) and lost.node in nodes
        if matters or (before and lost.node in wrong):
            return f"{what}, which no fault did"
    return None


def _nodes_of_findings(result: CheckResult) -> set[str | None]:
    """The nodes on which the subtasks ran that are not as predicted."""
    return {(each.detail.get("before") or each.detail).get("node") for each in result.findings}


def _same_result(one: CheckResult, other: CheckResult) -> bool:
    """Whether both have the same outcome and findings and, where nothing is wrong, counts."""
    found = [{(each.what, each.where) for each in result.findings} for result in (one, other)]
    same_counts = one.outcome != Outcome.HELD or one.counts == other.counts
    return one.outcome == other.outcome and found[0] == found[1] and same_counts


def _interruption(result: CheckResult, failover: Failover, whole: History) -> str | None:
    """A message if the run was interrupted before anything failed, with the time since the fault;
    else None."""
    if failover.end_ns is not None or failed_waits(whole) or whole.first(RunDrained) is not None:
        return None
    failed = whole.first(*FAILURES, after_ns=failover.start_ns) is not None
    if failed or result.counts.get("restarted") != 0:
        return None
    left_s = (max(event.at_ns for event in whole) - failover.start_ns) / 1e9
    return f"the record ends {left_s:.1f} s after the fault"


def _repeats(failover: Failover) -> RepeatedTasks:
    """The repeated tasks, on the nodes of the failover's faults and of earlier faults that still
    acted."""
    faults = (*failover.active_faults, *failover.faults)
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
    affected: Set[Subtask],
    global_failures: int,
) -> dict[str, Any]:
    """`restarted` counts a subtask once; `restarts` counts each of its restarts."""
    survivors = [task for task in found.values() if not task.restarted]
    return {
        "restarted": len(restarted),
        "predicted": len(predicted),
        "all": len(found),
        "affected": len(affected),
        "blast_radius": round(len(restarted) / len(found), 3),
        "restarts": sum(max(1, found[place].restarts) for place in restarted),
        "global_failures": global_failures,
        "survivors": len(survivors),
        "survivors_watched": sum(task.watched for task in survivors),
    }


def _was_watched(history: History, effect_ns: int, running: Mapping[str, Samples]) -> bool:
    """Whether the tasks were sampled after the fault."""
    checked = history.first(*TASK_EVENTS, after_ns=effect_ns + 1) is not None
    return checked or any(float(s.at_s[-1]) * 1e9 > effect_ns for s in running.values())


def _not_detected(history: History, effect_ns: int) -> str | None:
    """A message if the engine never detected the failure, with the time until the heal; else
    None."""
    if history.first(*FAILURES, after_ns=effect_ns) is not None:
        return None
    healed = history.first(FaultHealed, after_ns=effect_ns)
    if healed is None:
        return "the failure was never detected"
    healed_s = (healed.at_ns - effect_ns) / 1e9
    return f"the failure was never detected: the fault was healed after {healed_s:.1f} s"


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
