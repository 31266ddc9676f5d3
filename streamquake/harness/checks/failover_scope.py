"""Failover scope: which subtasks restarted, compared with which had to.

The prediction comes from the job's graph: the victims are the subtasks that ran on the disturbed
nodes, `region` adds every subtask that exchanges records with them without keeping them in between
(Flink's pipelined regions), `job` is all of them. What did restart is read from the attempt
numbers, which is the only sign that tells survivors from the rest: the job's state and restart
counters change for any region.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from streamquake.harness.check import Case, Check, checks
from streamquake.reports.event import Action, Event
from streamquake.reports.history import History
from streamquake.reports.outcome import CheckResult, Finding

Subtask = tuple[str, int]


@checks.register
class FailoverScope(Check):
    """Held when exactly the predicted subtasks restarted, no more and no fewer."""

    name: ClassVar[str] = "failover_scope"

    expect: Literal["task", "region", "job"]
    """How far a failure may spread: the failed subtasks, their regions, or the whole job."""

    def check(self, case: Case) -> CheckResult:
        struck = next(iter(case.history.of(Action.FAULT_IN_EFFECT)), None)
        graph = next(iter(case.history.of(Action.JOB_SUBMITTED)), None)
        if struck is None or graph is None:
            return self.undecided("no fault took effect, or the job's graph was not seen")
        before = _attempts(case.history, until_ns=struck.value["seen_ns"])
        victims = {task for task, last in before.items() if last.value["node"] in _nodes(struck)}
        if not victims:
            return self.undecided(f"no subtask ran on {', '.join(_nodes(struck))}")
        after = _attempts(case.history)
        restarted = {
            task
            for task, last in after.items()
            if task in before and last.value["attempt"] > before[task].value["attempt"]
        }
        predicted = self._predicted(graph, victims)
        counts = {
            "restarted": len(restarted),
            "predicted": len(predicted),
            "all": len(before),
            "victims": len(victims),
        }
        said = f"{len(restarted)} of {len(before)} subtasks restarted, {len(predicted)} predicted"
        wrong = (
            *_findings("restarted, not predicted", restarted - predicted, after),
            *_findings("predicted, not restarted", predicted - restarted, after),
        )
        if wrong:
            return self.violated(f"{said} ({self.expect})", wrong, **counts)
        return self.held(f"{said} ({self.expect})", **counts)

    def _predicted(self, graph: Event, victims: set[Subtask]) -> set[Subtask]:
        if self.expect == "task":
            return victims
        regions = [{(vertex, n) for vertex, n in region} for region in graph.value["regions"]]
        if self.expect == "region":
            regions = [region for region in regions if region & victims]
        return set().union(*regions)


def _nodes(struck: Event) -> tuple[str, ...]:
    return tuple(struck.value["nodes"])


def _attempts(history: History, until_ns: int | None = None) -> dict[Subtask, Event]:
    """The last attempt of every subtask seen until a moment."""
    seen: dict[Subtask, Event] = {}
    for event in history.of(Action.TASK_CHANGED):
        if until_ns is None or event.at_ns <= until_ns:
            seen[(event.value["vertex"], event.value["subtask"])] = event
    return seen


def _findings(
    what: str, tasks: Iterable[Subtask], after: dict[Subtask, Event]
) -> Iterable[Finding]:
    for vertex, number in sorted(tasks):
        last = after.get((vertex, number))
        detail = dict(last.value) if last is not None else {}
        yield Finding(what=what, where=f"{vertex} ({number})", detail=detail)
