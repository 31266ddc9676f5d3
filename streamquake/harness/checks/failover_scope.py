"""Failover scope: which subtasks restarted, compared with which had to.

The prediction comes from the job's graph and from whom the faults hit: the subtasks on a node whose
process was killed or whose machine fell silent, or the one in which an exception was thrown. What
did restart is read from each subtask's attempts, their start times and nodes, and from how long it
has been running; the job's state and restart counters change for any region.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, ClassVar, Literal

from streamquake.harness.check import Case, Check, checks
from streamquake.harness.evidence.attempts import KINDS, repeats_after
from streamquake.harness.evidence.blast import Graph
from streamquake.harness.evidence.lives import RUNNING, Life, Subtask, lives
from streamquake.harness.evidence.stretch import struck_ns
from streamquake.harness.evidence.victims import must_end_tasks, victims_of
from streamquake.reports.event import Action, Event
from streamquake.reports.history import History
from streamquake.reports.metrics import Samples, by_series, read_metrics
from streamquake.reports.outcome import CheckResult, Finding

LOOKS = (Action.TASK_CHANGED, Action.JOB_RUNNING, Action.JOB_RESTARTING, Action.JOB_FAILING)
"""What only somebody tells who looks at the job's tasks."""


@checks.register
class FailoverScope(Check):
    """Held when exactly the predicted subtasks restarted, no more and no fewer."""

    name: ClassVar[str] = "failover_scope"
    classes: ClassVar[tuple[str, ...]] = (
        "batch run again whole", "repeated for lost shuffle output", "failed", "restarted",
        "predicted", "global failure", "node changed", "ended", "duration fell",
    )  # fmt: skip

    expect: Literal["task", "region", "job"]
    """How far a failure may spread: the failed subtasks, their regions, or the whole job."""

    def check(self, case: Case) -> CheckResult:
        struck = case.history.of(Action.FAULT_IN_EFFECT)
        if struck and case.history.of(Action.TASK_ATTEMPT):
            return self._judged_by_attempts(case.history, struck)
        graph = next(iter(case.history.of(Action.JOB_SUBMITTED)), None)
        if not struck or graph is None or "regions" not in graph.value:
            return self.undecided("no fault took effect, or the job's graph was not seen")
        running = by_series(read_metrics(case.metrics)).get(RUNNING, {})
        effect_ns = struck[0].value.get("called_ns", struck[0].value["seen_ns"])
        found = lives(case.history, effect_ns, running)
        restarted = {place for place, life in found.items() if life.restarted}
        ending = [fault for fault in struck if must_end_tasks(fault)]
        if not ending and not restarted:
            return self.undecided("nothing restarted, and no fault was one that ends tasks")
        victims = {v for fault in ending or struck for v in victims_of(fault, case.history)}
        if not victims & set(found):
            return self.undecided(f"no subtask is known to have been hit on {_nodes(struck)}")
        if not _was_watched(case.history, effect_ns, running):
            return self.undecided("nobody looked at the job's tasks after the fault took effect")
        return self._judged(case.history, Graph(graph.value), found, victims, effect_ns)

    def _judged_by_attempts(self, history: History, struck: Sequence[Event]) -> CheckResult:
        """The same of tasks that live for one batch: their attempts tell."""
        effect_ns = struck_ns(history)
        assert effect_ns is not None
        nodes = {node for fault in struck for node in fault.value.get("nodes") or ()}
        found = repeats_after(history, effect_ns, nodes)
        if history.first(Action.TASK_ATTEMPT, after_ns=effect_ns + 1) is None:
            return self.undecided("no task was seen to end after the fault took effect")
        if found.kind is None:
            return self.undecided(
                f"nothing was repeated: no task was under way on {_nodes(struck)}"
            )
        counts: dict[str, Any] = {
            "repeated": found.count, "hit": len(found.hit), "shuffle_lost": len(found.shuffle),
            "unexplained": len(found.unexplained), "batches_repeated": len(found.batches),
            "all": found.tasks,
            "blast_radius": round(found.count / found.tasks, 3) if found.tasks else None,
        }  # fmt: skip
        said = (
            f"{len(found.hit)} attempts lost with their executor, {len(found.shuffle)} tasks "
            f"repeated for lost shuffle output, {len(found.batches)} batches run again whole; "
            f"recognised as {found.kind}, {self.expect} predicted"
        )
        wider = KINDS.index(found.kind) > KINDS.index(self.expect)
        narrower = self.expect == "job" and found.kind != "job"
        # A failure that ends the batch itself may show in its tasks in any way.
        strange = {} if self.expect == "job" else found.unexplained
        if not (wider or narrower or strange):
            return self.held(said, **counts)
        repeated = found.shuffle if wider else {}
        wrong = (
            *(Finding(what="batch run again whole", where=f"batch {n}") for n in found.batches),
            *(_attempt("repeated for lost shuffle output", e) for e in repeated.values()),
            *(_attempt("failed, not predicted", e) for e in strange.values()),
        )
        return self.violated(said, wrong, **counts)

    def _judged(
        self, history: History, graph: Graph, found: Mapping[Subtask, Life],
        victims: Set[Subtask], effect_ns: int,
    ) -> CheckResult:  # fmt: skip
        restarted = {place for place, life in found.items() if life.restarted}
        predicted = graph.reach(self.expect, victims)
        causes = [
            str(event.value.get("cause"))
            for event in history.of(Action.JOB_FAILING)
            if event.at_ns >= effect_ns and event.value.get("task", "") is None
        ]
        wrong = (
            *_findings(restarted - predicted, found, "restarted, not predicted"),
            *_findings(predicted - restarted, found, "predicted, not restarted"),
            *(Finding(what="global failure", detail={"cause": cause}) for cause in causes),
        )
        counts = _counts(found, restarted, predicted, victims, len(causes))
        kind = graph.kind(victims, restarted) or "none of task, downstream, region, job"
        said = (
            f"{len(restarted)} of {len(found)} subtasks restarted, {len(predicted)} predicted "
            f"({self.expect}); recognised as {kind if restarted else 'no failover'}"
        )
        if causes and self.expect != "job":
            said += f"; {len(causes)} global failures, the first: {causes[0]}"
        if restarted <= predicted and restarted and not _ran_whole_again(history, effect_ns):
            said += "; the job was not seen to run whole again, so more may have had to"
            return self.undecided(said, wrong, **counts)
        if restarted == predicted:
            return self.held(said, **counts)
        if not restarted and (why := _not_detected(history, effect_ns)) is not None:
            said += f"; {why}"
        return self.violated(said, wrong, **counts)


def _attempt(what: str, event: Event) -> Finding:
    value = event.value
    where = f"batch {value['batch']}, stage {value['stage']}, task {value['task']}"
    return Finding(what=what, where=where, detail=value)


def _counts(
    found: Mapping[Subtask, Life], restarted: Set[Subtask], predicted: Set[Subtask],
    victims: Set[Subtask], global_failures: int,
) -> dict[str, Any]:  # fmt: skip
    """A subtask that restarted several times is one of `restarted`; `restarts` has every time."""
    survivors = [life for life in found.values() if not life.restarted]
    return {
        "restarted": len(restarted),
        "predicted": len(predicted),
        "all": len(found),
        "victims": len(victims),
        "blast_radius": round(len(restarted) / len(found), 3),
        "restarts": sum(max(1, found[place].restarts) for place in restarted),
        "global_failures": global_failures,
        "survivors": len(survivors),
        "survivors_watched": sum(life.watched for life in survivors),
    }


def _was_watched(history: History, effect_ns: int, running: Mapping[str, Samples]) -> bool:
    """Whether somebody looked at the tasks after the fault."""
    looked = history.first(*LOOKS, after_ns=effect_ns + 1) is not None
    return looked or any(float(s.at_s[-1]) * 1e9 > effect_ns for s in running.values())


def _ran_whole_again(history: History, effect_ns: int) -> bool:
    """Whether every task was seen to run after the last failure, and after a first restart."""
    failures = [e.at_ns for e in history.of(Action.JOB_RESTARTING, Action.JOB_FAILING)]
    changed = history.first(Action.TASK_CHANGED, after_ns=effect_ns + 1)
    since_ns = max([effect_ns, *failures, *([changed.at_ns] if changed else [])])
    return history.first(Action.JOB_RUNNING, after_ns=since_ns) is not None


def _not_detected(history: History, effect_ns: int) -> str | None:
    """That the engine never noticed, where it did not; and how soon the fault was gone."""
    noticed = history.first(Action.JOB_FAILING, Action.JOB_RESTARTING, after_ns=effect_ns)
    if noticed is not None:
        return None
    healed = history.first(Action.FAULT_HEALED, after_ns=effect_ns)
    if healed is None:
        return "the failure was never detected"
    gone_s = (healed.at_ns - effect_ns) / 1e9
    return f"the failure was never detected: the fault was healed after {gone_s:.1f} s"


def _findings(
    places: Iterable[Subtask], found: Mapping[Subtask, Life], what: str
) -> Iterable[Finding]:
    for vertex, number in sorted(places):
        life = found.get((vertex, number))
        if life is None:
            yield Finding(what=what, where=f"{vertex} ({number})")
            continue
        before = {key: life.before.value.get(key) for key in ("attempt", "start_ms", "node")}
        detail = {**life.last.value, "before": before}
        if life.watched:
            detail |= {"running_ms_before": life.before_ms, "running_ms": life.after_ms}
        yield Finding(what=life.sign or what, where=f"{life.name} ({number})", detail=detail)


def _nodes(struck: Sequence[Event]) -> str:
    return ", ".join(node for fault in struck for node in fault.value.get("nodes") or ())
