"""A later attempt of a subtask needs a job that leaves the state RUNNING."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.unexplained_attempts import unexplained_attempts
from streamquake.reports.record.event import Action
from tests.harness.histories import Story, case

FAILING, RESTARTING, RUNNING = Action.JOB_FAILING, Action.JOB_RESTARTING, Action.JOB_RUNNING
MESSAGE = (
    "map (0) is recorded in attempt 1 at 40.0 s, but its job was running and did not fail or "
    "restart"
)


def task(story: Story, at_s: float, attempt: int, **changed: Any) -> None:
    value = {"job": "j", "vertex": "v", "vertex_name": "map", "subtask": 0, "state": "RUNNING"}
    value |= {"attempt": attempt, "node": "flink/taskmanager-1", "start_ms": 100}
    story.at(at_s, Action.TASK_CHANGED, **{**value, **changed})


def restarted(*states: tuple[float, Action], job: str = "j") -> Story:
    """A job that is running from 8 s on, and its subtask: attempt 0 from 10 s on, attempt 1 from
    40 s on."""
    story = Story()
    story.at(8, RUNNING, job="j")
    task(story, 10, 0)
    for at_s, action in (each for each in states if each[0] <= 40):
        story.at(at_s, action, job=job)
    task(story, 40, 1, state="SCHEDULED")
    task(story, 41, 1)
    for at_s, action in (each for each in states if each[0] > 40):
        story.at(at_s, action, job=job)
    return story


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ([], True),
        ([(39, FAILING), (42, RUNNING)], False),
        ([(39, RESTARTING), (42, RUNNING)], False),
        ([(39, FAILING), (39.5, RESTARTING)], False),
        ([(44, FAILING)], False),  # seen by the next poll
        ([(60, FAILING)], True),
        ([(60, RUNNING)], False),  # rescaled
        ([(20, FAILING), (22, RUNNING)], True),
    ],
)
def test_a_later_attempt_needs_a_failover(states: list[tuple[float, Action]], told: bool) -> None:
    messages = list(unexplained_attempts(restarted(*states).history()))

    assert messages == ([MESSAGE] if told else [])


def test_a_failover_of_another_job_explains_nothing() -> None:
    story = restarted((39, FAILING), (42, RUNNING), job="other")

    assert list(unexplained_attempts(story.history())) == [MESSAGE]


def test_a_second_restart_needs_a_failover_of_its_own() -> None:
    story = restarted((39, FAILING), (42, RUNNING))
    task(story, 90, 2)

    (message,) = unexplained_attempts(story.history())

    assert "in attempt 2 at 90.0 s" in message


@pytest.mark.parametrize("running", [True, False])
def test_the_first_attempt_that_is_seen_needs_none(running: bool) -> None:
    story = Story()
    if running:
        story.at(5, RUNNING, job="j")
    task(story, 10, 3)

    assert list(unexplained_attempts(story.history())) == []


def test_an_unexplained_attempt_makes_a_run_undecided(tmp_path: Path) -> None:
    found = Execution().check(case(restarted(), tmp_path))

    assert MESSAGE in [each.detail["reason"] for each in found.findings]
