"""The phases of micro-batches, by the stamps of their steps."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.coverage.batch_windows import batch_windows
from streamquake.harness.coverage.phase_window import Onset, Position, position_of
from streamquake.reports.coverage.cell import Phase
from streamquake.reports.record.event import Action
from tests.harness.histories import Story
from tests.harness.verdict.checkpoint_story import stamp

STEPS = {
    Action.OFFSET_WRITTEN: 1.0,
    Action.BATCH_RUNNING: 3.0,
    Action.SINK_WRITTEN: 6.0,
    Action.COMMIT_WRITTEN: 8.0,
}


def batch(number: int = 0, *without: Action, story: Story | None = None) -> Story:
    """A batch of ten seconds, with its steps."""
    found = story or Story()
    for action, after_s in STEPS.items():
        if action not in without:
            at_s = 10 * number + after_s
            common: dict[str, Any] = {"job": "q", "checkpoint": number}
            found.at(at_s, action, **common, step_ms=stamp(at_s))
    return found


def phases_at(story: Story, at_s: float) -> dict[Phase, Position]:
    onset = Onset(called_ns=round(at_s * 1e9), seen_ns=round((at_s + 0.02) * 1e9))
    found = ((w.phase, position_of(onset, w)) for w in batch_windows(story.history()))
    return {phase: position for phase, position in found if position}


@pytest.mark.parametrize(
    ("at_s", "phase"),
    [(2, Phase.PLANNED), (5, Phase.RUNNING), (7, Phase.SINK_WRITTEN), (9, Phase.COMMITTED)],
)
def test_a_fault_is_in_the_phase_between_two_steps(at_s: float, phase: Phase) -> None:
    story = batch().at(11, Action.OFFSET_WRITTEN, job="q", checkpoint=1, step_ms=stamp(11))
    assert phases_at(story, at_s) == {phase: Position.PROVEN}


def test_a_phase_without_the_step_after_it_is_not_proven() -> None:
    assert phases_at(batch(0, Action.SINK_WRITTEN), 5) == {Phase.RUNNING: Position.POSSIBLE}
    assert phases_at(batch(), 9) == {Phase.COMMITTED: Position.POSSIBLE}


def test_a_failure_ends_the_phase_in_which_the_fault_caused_it() -> None:
    story = Story().at(1, Action.OFFSET_WRITTEN, job="q", checkpoint=0, step_ms=stamp(1))
    story.at(3, Action.BATCH_RUNNING, job="q", checkpoint=0, step_ms=stamp(3))
    story.at(5.1, Action.JOB_FAILING, job="q", failed_ms=stamp(5.01))
    assert phases_at(story, 5) == {Phase.RUNNING: Position.PROVEN}
    assert phases_at(story, 5.2) == {}


def test_another_query_ends_no_phase() -> None:
    story = batch().at(8.5, Action.OFFSET_WRITTEN, job="other", checkpoint=1, step_ms=stamp(8.5))
    assert phases_at(story, 9)[Phase.COMMITTED] == Position.POSSIBLE
