"""Attempts of a subtask that are on two nodes, or that go back to an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.attempt_contradictions import contradicted_attempts
from streamquake.reports.record.event import Action
from tests.harness.histories import Story, case

ONE, OTHER = "flink/taskmanager-1", "flink/taskmanager-7"
BACK = "map (0) is recorded in attempt 5, and then in attempt 0, without a restart of its job"


def task(at_s: float, story: Story | None = None, **changed: Any) -> Story:
    """A subtask of a map as it is seen at a moment, deployed at the epoch's millisecond 100."""
    value = {"job": "j", "vertex": "v", "vertex_name": "map", "subtask": 0, "attempt": 0}
    value |= {"node": ONE, "state": "RUNNING", "start_ms": 100}
    return (story or Story()).at(at_s, Action.TASK_CHANGED, **{**value, **changed})


def messages(story: Story) -> list[str]:
    return list(contradicted_attempts(story.history()))


@pytest.mark.parametrize(
    ("later", "told"),
    [
        ({"node": OTHER}, True),
        ({"node": ONE}, False),
        ({"node": OTHER, "attempt": 1, "start_ms": 200}, False),
        ({"node": OTHER, "start_ms": 200}, False),  # counted anew by another JobManager
        ({"node": OTHER, "subtask": 1}, False),
        ({"node": OTHER, "job": "next"}, False),
        ({"node": ""}, False),
        ({"node": None}, False),
        ({"node": "taskmanager-7:42405-5df045"}, False),  # not known by its name
    ],
)
def test_an_attempt_stays_on_its_node(later: dict[str, Any], told: bool) -> None:
    story = task(2, task(1, state="INITIALIZING"), **later)
    message = f"attempt 0 of map (0) is recorded on {ONE} and on {OTHER}"
    assert messages(story) == ([message] if told else [])


def test_an_attempt_that_is_not_deployed_is_on_no_node() -> None:
    assert messages(task(2, task(1, start_ms=-1), node=OTHER, start_ms=-1)) == []


@pytest.mark.parametrize("start_ms", [-1, 100, 200])
def test_a_subtask_does_not_go_back_to_an_earlier_attempt(start_ms: int) -> None:
    assert messages(task(2, task(1, attempt=5), start_ms=start_ms)) == [BACK]


@pytest.mark.parametrize(
    ("restarted_s", "job", "told"),
    [(0.5, "j", True), (1.5, "j", False), (1.5, "next", True), (3, "j", False), (9, "j", True)],
)
def test_another_jobmanager_counts_anew(restarted_s: float, job: str, told: bool) -> None:
    """It is reported as a restart of the job, by the same poll or the next one."""
    story = Story().at(0.5, Action.JOB_RESTARTING, job=job) if restarted_s < 1 else Story()
    task(1, story, attempt=5)
    if restarted_s > 1:
        story.at(restarted_s, Action.JOB_RESTARTING, job=job)
    assert messages(task(2, story, start_ms=200)) == ([BACK] if told else [])


def test_where_a_fault_moved_the_clocks_a_restart_may_be_unseen() -> None:
    story = Story().at(0.5, Action.FAULT_CALLED, step=0, fault="clock_skew", targets=[])
    assert messages(task(2, task(1, story, attempt=5))) == []


def test_contradictory_attempts_make_a_run_undecided(tmp_path: Path) -> None:
    found = Execution().check(case(task(2, task(1, attempt=5)), tmp_path))
    assert BACK in [each.detail["reason"] for each in found.findings]
