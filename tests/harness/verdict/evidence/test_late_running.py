"""A task that acknowledges checkpoints is running."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.late_running import running_after_acknowledgement
from streamquake.reports.record.event import Action
from tests.harness.histories import Story, case

START_MS = 1_000


def history_of(running_s: float, ack_ms: float | None = 3_000, **acknowledged: Any) -> Story:
    """A checkpoint that is complete at 50 s, and a task that is running, by the record, from
    `running_s` on."""
    ack = {"vertex": "v", "subtask": 0, "ack_ms": ack_ms, **acknowledged}
    completed = {"job": "j", "checkpoint": 7, "subtasks": [ack]}
    task = {"job": "j", "vertex": "v", "vertex_name": "map", "subtask": 0, "attempt": 1}
    task |= {"node": "flink/taskmanager-1", "state": "RUNNING", "start_ms": START_MS}
    story = Story()
    for at_s, action, value in sorted(
        [(50.0, Action.CHECKPOINT_COMPLETED, completed), (running_s, Action.TASK_CHANGED, task)],
        key=lambda each: each[0],
    ):
        story.at(at_s, action, **value)
    return story


@pytest.mark.parametrize(
    ("running_s", "acknowledged", "told"),
    [
        (90, {}, True),
        (54, {}, False),  # seen by a later poll
        (40, {}, False),
        (90, {"subtask": 1}, False),
        (90, {"vertex": "w"}, False),
        (90, {"ack_ms": 900}, False),  # by the attempt before
        (90, {"ack_ms": None}, False),
    ],
)
def test_a_task_runs_when_it_acknowledges(
    running_s: float, acknowledged: dict[str, Any], told: bool
) -> None:
    messages = list(running_after_acknowledgement(history_of(running_s, **acknowledged).history()))

    expected = (
        "map (0) is recorded as running at 90.0 s, but its attempt 1 acknowledged checkpoint 7, "
        "which was complete at 50.0 s"
    )
    assert messages == ([expected] if told else [])


def test_an_attempt_without_a_start_is_not_judged() -> None:
    story = Story()
    story.at(
        50,
        Action.CHECKPOINT_COMPLETED,
        job="j",
        checkpoint=7,
        subtasks=[{"vertex": "v", "subtask": 0, "ack_ms": 3_000}],
    )
    task = {"job": "j", "vertex": "v", "subtask": 0, "attempt": 0, "node": None}
    story.at(90, Action.TASK_CHANGED, **task, state="RUNNING", start_ms=-1)

    assert list(running_after_acknowledgement(story.history())) == []


def test_a_late_running_makes_a_run_undecided(tmp_path: Path) -> None:
    found = Execution().check(case(history_of(90), tmp_path))

    assert any("acknowledged checkpoint 7" in each.detail["reason"] for each in found.findings)
