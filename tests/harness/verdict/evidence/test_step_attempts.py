"""The newest attempt of a step: its events by their class, typed."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, last_attempt
from streamquake.reports.record.event import Action
from streamquake.reports.record.fault_events import (
    FaultCalled,
    FaultHealed,
    FaultInEffect,
    FaultMissedWindow,
)
from tests.harness.histories import Story


def test_the_newest_attempt_of_a_step_is_since_its_last_call() -> None:
    story = Story().at(1, Action.FAULT_CALLED, step=0).at(2, Action.FAULT_MISSED_WINDOW, step=0)
    story.at(3, Action.FAULT_CALLED, step=1).at(4, Action.FAULT_HEALED, step=1)
    story.at(5, Action.FAULT_CALLED, step=0).at(6, Action.FAULT_IN_EFFECT, step=0)

    attempt = last_attempt(story.history(), 0)

    assert attempt[FaultCalled].at_s == 5
    assert attempt[FaultInEffect].at_s == 6
    assert FaultMissedWindow not in attempt, "that of the earlier attempt does not count"
    assert attempt.get(FaultHealed) is None, "of another step"


def test_an_event_without_its_step_belongs_to_no_attempt() -> None:
    story = Story().at(1, Action.FAULT_CALLED, step=0).at(2, Action.FAULT_HEALED)

    assert FaultHealed not in last_attempt(story.history(), 0)


def test_a_missing_event_of_an_attempt_raises() -> None:
    with pytest.raises(KeyError, match="FaultHealed"):
        StepAttempt()[FaultHealed]
