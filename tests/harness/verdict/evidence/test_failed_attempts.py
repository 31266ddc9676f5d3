"""Failures of an attempt that its task had not reached or had left, or on another node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.failed_attempts import contradicted_failures
from streamquake.reports.record.event import Action
from tests.harness.histories import Story, case

HOST = "streamquake-run-flink-taskmanager-{}-sandbox.streamquake-run:6125"
FAILED = "attempt {} of map (0) failed at 3.0 s, "
NOT_REACHED = FAILED.format(3) + "and after it the task was seen in attempt 0"
LEFT = FAILED.format(0) + "by its stamp after attempt 1 was deployed"
ELSEWHERE = FAILED.format(0) + "on flink/taskmanager-1 by its host, and ran on flink/taskmanager-7"


def task(story: Story, at_s: float, **changed: Any) -> Story:
    value = {"job": "j", "vertex": "v", "vertex_name": "map", "subtask": 0, "attempt": 0}
    value |= {"node": "flink/taskmanager-7", "state": "RUNNING", "start_ms": 100}
    return story.at(at_s, Action.TASK_CHANGED, **{**value, **changed})


def failed(before: dict[str, Any] | None = None, **failure: Any) -> Story:
    """A map whose attempt 0 runs beside another one, fails at 3 s, and is followed by attempt 1."""
    story = task(Story(), 1, vertex="w", vertex_name="sum", node="flink/taskmanager-1")
    task(story, 1, **(before or {}))
    value = {"job": "j", "task": "map (1/2) - execution #0", "failed_ms": 200}
    story.at(3, Action.JOB_FAILING, **{**value, "endpoint": HOST.format(7), **failure})
    task(story, 3.1, state="FAILED")
    return task(story, 3.5, attempt=1, node="flink/taskmanager-2", start_ms=300)


def messages(story: Story) -> list[str]:
    return list(contradicted_failures(story.history()))


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ({}, None),
        ({"task": "map (1/2) - execution #3"}, NOT_REACHED),
        ({"task": "map (1/2)"}, None),
        ({"task": None}, None),
        ({"task": "other (1/2) - execution #3"}, None),
        ({"failed_ms": 400}, LEFT),
        ({"failed_ms": None}, None),
        ({"endpoint": HOST.format(1)}, ELSEWHERE),
        ({"endpoint": HOST.format(71)}, None),  # the name of no node
        ({"endpoint": HOST.format(7).replace("6125", "6999")}, None),
        ({"endpoint": "(unassigned)"}, None),
        ({"endpoint": "10.0.0.7:6125"}, None),
        ({"endpoint": None}, None),
        ({"job": "next", "endpoint": HOST.format(1)}, None),
    ],
)
def test_a_failure_names_an_attempt_as_it_ran(failure: dict[str, Any], message: str | None) -> None:
    assert messages(failed(**failure)) == ([message] if message else [])


def test_a_failure_may_be_seen_after_the_next_attempt() -> None:
    """One poll asks for the tasks and only the next one for the failure."""
    story = task(task(Story(), 1), 2, attempt=1, start_ms=300)
    about = {"job": "j", "task": "map (1/2) - execution #0", "failed_ms": 200}
    assert messages(story.at(3, Action.JOB_FAILING, **about)) == []


def test_a_consumer_may_be_named_in_place_of_its_producer() -> None:
    about: dict[str, Any] = {"task": "sum (1/2) - execution #0", "endpoint": HOST.format(1)}
    assert messages(failed(**about)) == []


@pytest.mark.parametrize(
    "before", [{"start_ms": 50, "node": "flink/taskmanager-3"}, {"attempt": 2, "start_ms": 50}]
)
def test_attempts_that_were_counted_anew_are_not_judged(before: dict[str, Any]) -> None:
    assert messages(failed(before, task="map (1/2) - execution #3")) == []
    assert messages(failed(before, endpoint=HOST.format(1))) == []


def test_of_two_tasks_with_one_name_none_is_judged() -> None:
    story = task(failed(endpoint=HOST.format(1)), 4, vertex="x")
    assert messages(story) == []


def test_no_stamp_is_compared_where_a_fault_moved_the_clocks() -> None:
    story = failed(failed_ms=400).at(0, Action.FAULT_CALLED, step=0, fault="clock_skew", targets=[])
    assert messages(story) == []


def test_a_contradictory_failure_makes_a_run_undecided(tmp_path: Path) -> None:
    found = Execution().check(case(failed(endpoint=HOST.format(1)), tmp_path))
    assert ELSEWHERE in [each.detail["reason"] for each in found.findings]
