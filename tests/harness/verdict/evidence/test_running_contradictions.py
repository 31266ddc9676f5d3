"""A task that was seen to run long after the checkpoints that it took part in; the engine's clock
began 100 s before the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.running_contradictions import seen_to_run_late
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import Outcome
from tests.harness.histories import Story, case

MESSAGE = (
    "map (0) was seen to run at 60.0 s, and a checkpoint that it acknowledged to complete at 14.0 s"
)


def runs(recorded: Story, at_s: float, **changed: Any) -> Story:
    """The subtask is seen to run; it was deployed at 10 s."""
    about = {"vertex": "v", "vertex_name": "map", "subtask": 0, "attempt": 1, "node": "tm-1"}
    about |= {"job": "j", "state": "RUNNING", "start_ms": 110_000}
    return recorded.at(at_s, Action.TASK_CHANGED, **{**about, **changed})


def completes(recorded: Story, *seen_s: float, **changed: Any) -> Story:
    """Checkpoints that took a second and that every subtask acknowledged."""
    for number, at_s in enumerate(seen_s, 1):
        about = {"job": "j", "checkpoint": number, "trigger_ms": int(at_s + 99) * 1000}
        about["subtasks"] = [{"vertex": "v", "subtask": part} for part in (0, 1)]
        recorded.at(at_s, Action.CHECKPOINT_COMPLETED, **{**about, **changed})
    return recorded


def test_it_ran_long_before_it_was_seen_to() -> None:
    recorded = runs(completes(Story(), 14, 30, 44), 60)
    assert list(seen_to_run_late(recorded.history())) == [MESSAGE]


@pytest.mark.parametrize(
    "seen_s",
    [
        pytest.param((14,), id="the engine may not have answered since"),
        pytest.param((14, 28), id="nor long after the first"),
        pytest.param((14, 46, 59), id="nor long before it was seen to run"),
        pytest.param((61, 80, 99), id="they completed later"),
        pytest.param((10, 10.5), id="they were triggered before it was deployed"),
    ],
)
def test_a_poll_may_take_long(seen_s: tuple[float, ...]) -> None:
    recorded = completes(Story(), *(at_s for at_s in seen_s if at_s < 60))
    completes(runs(recorded, 60), *(at_s for at_s in seen_s if at_s > 60))
    assert not list(seen_to_run_late(recorded.history()))


@pytest.mark.parametrize(
    ("task", "checkpoint"),
    [
        ({"subtask": 2}, {}),
        ({"vertex": "other"}, {}),
        ({"start_ms": None}, {}),
        ({"start_ms": -1}, {}),
        ({"state": "CANCELED"}, {}),
        ({}, {"job": "other"}),
        ({}, {"subtasks": None}),
        ({}, {"trigger_ms": None}),
    ],
)
def test_only_what_the_attempt_acknowledged_shows_that_it_ran(
    task: dict[str, Any], checkpoint: dict[str, Any]
) -> None:
    recorded = runs(completes(Story(), 14, 30, 44, **checkpoint), 60, **task)
    assert not list(seen_to_run_late(recorded.history()))


def test_an_attempt_may_be_reported_again() -> None:
    recorded = runs(completes(runs(Story(), 13), 14, 30, 44), 60)
    assert not list(seen_to_run_late(recorded.history()))


def test_a_clock_that_a_fault_moved_shows_nothing() -> None:
    recorded = runs(completes(Story(), 14, 30, 44), 60)
    recorded.at(70, Action.FAULT_CALLED, step=0, fault="clock_skew", target="x")
    assert not list(seen_to_run_late(recorded.history()))


def test_a_task_that_ran_long_before_it_was_seen_to_decides_nothing(tmp_path: Path) -> None:
    result = Execution().check(case(runs(completes(Story(), 14, 30, 44), 60), tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert MESSAGE in [each.detail["reason"] for each in result.findings]
