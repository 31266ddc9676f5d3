"""Stamps of the engine that are later than the observation of their events."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.checks.restore import Restore
from streamquake.harness.verdict.evidence.future_stamps import stamped_after_its_observation
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import Outcome
from tests.harness.verdict.checkpoint_story import JOB, CheckpointStory, stamp


def restarted(late_s: float = 0.0, completed: int = 4) -> CheckpointStory:
    """Some checkpoints, and a restart whose restore is stamped later than it was."""
    story = CheckpointStory().submitted().running(2)
    for number in range(1, completed + 1):
        story.completed(number, 5.0 * number)
    story.failing(23)
    about = {"checkpoint": completed, "restored_at_ms": stamp(24 + late_s)}
    story.at(24.5, Action.JOB_RESTORED, job=JOB, **about)
    return story.running(26).completed(completed + 1, 28)


@pytest.mark.parametrize(
    ("late_s", "completed", "told"),
    [(0.0, 4, False), (1.4, 4, False), (1.6, 4, True), (20.0, 4, True), (20.0, 1, False)],
)
def test_a_stamp_later_than_its_event_is_named(late_s: float, completed: int, told: bool) -> None:
    found = stamped_after_its_observation(restarted(late_s, completed).history())
    message = (
        f"`job restored` at 24.5 s has a stamp that is {late_s - 0.5:.1f} s later, by all other "
        "stamps"
    )
    assert found == (message if told else None)


@pytest.mark.parametrize("action", [Action.CHECKPOINT_TRIGGERED, Action.CHECKPOINT_COMPLETED])
def test_the_stamps_of_a_checkpoint_count_together(action: Action) -> None:
    story = restarted()
    about = {"job": JOB, "checkpoint": 9, "trigger_ms": stamp(1030)}
    story.at(30, action, **about).at(30, Action.CHECKPOINT_FAILED, **about)
    assert stamped_after_its_observation(story.history()) == (
        f"`{action}` at 30.0 s has a stamp that is 1,000.0 s later, by all other stamps"
    )


def test_events_may_be_observed_late() -> None:
    """As if the JobManager was away."""
    story = restarted()
    story.at(60, Action.CHECKPOINT_TRIGGERED, job=JOB, checkpoint=9, trigger_ms=stamp(30))
    assert stamped_after_its_observation(story.history()) is None


def test_where_a_fault_moved_the_clocks_no_stamp_is_late() -> None:
    story = restarted(20).at(1, Action.FAULT_CALLED, step=0, fault="clock_skew", targets=[])
    assert stamped_after_its_observation(story.history()) is None


def test_a_late_stamp_decides_nothing(tmp_path: Path) -> None:
    assert Restore().check(restarted().judged(tmp_path)).outcome == Outcome.HELD
    case = restarted(20).judged(tmp_path)
    message = "`job restored` at 24.5 s has a stamp that is 19.5 s later, by all other stamps"
    assert Restore().check(case).summary == message
    reasons = [each.detail["reason"] for each in Execution().check(case).findings]
    assert message in reasons
