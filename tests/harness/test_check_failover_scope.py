"""Failover scope: two regions of two subtasks each; who restarted, and was that predicted."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.checks.failover_scope import FailoverScope
from streamquake.reports.event import Action
from streamquake.reports.outcome import Outcome
from tests.harness.histories import Story, case

REGIONS = [[["source", 0], ["sink", 0]], [["source", 1], ["sink", 1]]]
WHERE = {
    ("source", 0): "flink/taskmanager-1", ("sink", 0): "flink/taskmanager-1",
    ("source", 1): "flink/taskmanager-2", ("sink", 1): "flink/taskmanager-2",
}  # fmt: skip


def story(restarted: list[tuple[str, int]], node: str = "flink/taskmanager-1") -> Story:
    told = Story().at(1, Action.JOB_SUBMITTED, regions=REGIONS)
    for (vertex, number), there in WHERE.items():
        told.at(2, Action.TASK_CHANGED, vertex=vertex, subtask=number, attempt=0, node=there)
    told.at(5, Action.FAULT_IN_EFFECT, step=0, seen_ns=5 * 10**9, nodes=[node], evidence={})
    for vertex, number in restarted:
        told.at(8, Action.TASK_CHANGED, vertex=vertex, subtask=number, attempt=1, node="n")
    return told


REGION = [("source", 0), ("sink", 0)]
JOB = [*REGION, ("source", 1), ("sink", 1)]


@pytest.mark.parametrize(
    ("restarted", "expect", "outcome"),
    [
        (REGION, "region", Outcome.HELD),
        (JOB, "job", Outcome.HELD),
        (JOB, "region", Outcome.VIOLATED),
        (REGION, "job", Outcome.VIOLATED),
        ([], "region", Outcome.VIOLATED),
        (REGION, "task", Outcome.HELD),
    ],
)
def test_what_restarted_against_what_had_to(
    restarted: list[tuple[str, int]], expect: str, outcome: Outcome, tmp_path: Path
) -> None:
    result = FailoverScope(expect=expect).check(case(story(restarted), tmp_path))  # type: ignore[arg-type]
    assert result.outcome == outcome
    assert result.counts["restarted"] == len(restarted)


def test_the_unpredicted_restarts_are_named(tmp_path: Path) -> None:
    result = FailoverScope(expect="region").check(case(story(JOB), tmp_path))
    assert {(f.what, f.where) for f in result.findings} == {
        ("restarted, not predicted", "source (1)"),
        ("restarted, not predicted", "sink (1)"),
    }


def test_a_node_that_ran_nothing_proves_nothing(tmp_path: Path) -> None:
    result = FailoverScope(expect="job").check(
        case(story([], node="flink/taskmanager-3"), tmp_path)
    )
    assert result.outcome == Outcome.UNDECIDED
