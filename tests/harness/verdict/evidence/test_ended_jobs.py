"""Jobs that go on after their end; the engine's clock began 100 s before the run."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.ended_jobs import contradicted_ends, drained_without_job
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


def stamp(at_s: float) -> int:
    return round((at_s + 100) * 1000)


def ended(end_s: float, *, seen_s: float, job: str = "a", state: str = "FAILED") -> Story:
    """A job of which the end has a stamp, and is observed later."""
    story = Story().at(1, Action.JOB_SUBMITTED, job=job, submitted_ms=stamp(1))
    return story.at(seen_s, Action.JOB_ENDED, job=job, state=state, ended_ms=stamp(end_s))


@pytest.mark.parametrize(
    ("action", "seen_s", "stamps", "goes_on"),
    [
        (Action.CHECKPOINT_TRIGGERED, 20, {"trigger_ms": stamp(14)}, True),
        (Action.CHECKPOINT_TRIGGERED, 20, {"trigger_ms": stamp(13)}, False),  # within 3 s
        (Action.CHECKPOINT_TRIGGERED, 30, {"trigger_ms": stamp(9)}, False),  # observed late
        (Action.CHECKPOINT_COMPLETED, 30, {"trigger_ms": stamp(9)}, False),
        (
            Action.CHECKPOINT_COMPLETED,
            30,
            {"trigger_ms": stamp(9), "last_ack_ms": stamp(14)},
            True,
        ),
        (Action.JOB_RUNNING, 18, {}, False),  # without a stamp it may have been before the end
        (Action.JOB_RUNNING, 18.1, {}, True),
    ],
)
def test_a_job_goes_on_by_stamps_or_by_what_follows_the_observed_end(
    action: Action, seen_s: float, stamps: dict[str, Any], goes_on: bool
) -> None:
    """It ended at 10 s, which was observed at 15 s."""
    story = ended(10, seen_s=15).at(seen_s, action, job="a", checkpoint=7, **stamps)
    found = list(contradicted_ends(story.history()))
    assert bool(found) == goes_on
    assert all(
        each.startswith("the job FAILED at 10.0 s, and is recorded to go on") for each in found
    )


@pytest.mark.parametrize(
    ("sent_s", "status", "contradicts"),
    [
        (13, "acknowledged", False),
        (13.1, "acknowledged", True),
        (30, "unknown", False),
        (None, "", False),
    ],
)
def test_a_drained_run_has_a_job_that_read_what_was_sent(
    sent_s: float | None, status: str, contradicts: bool
) -> None:
    story = ended(10, seen_s=15)
    if sent_s is not None:
        story.sent(sent_s, 9, status)
    assert drained_without_job(story.history()) is None, "without a drain it is no claim"
    message = drained_without_job(story.at(40, Action.DRAINED).history())
    assert (message is not None) == contradicts


def test_the_last_end_counts_by_its_stamp() -> None:
    """The first job ended last, and its end was observed first."""
    story = ended(28, seen_s=29).at(2, Action.JOB_SUBMITTED, job="b", submitted_ms=stamp(2))
    story.at(30, Action.JOB_ENDED, job="b", state="CANCELED", ended_ms=stamp(5))
    story.sent(30.9, 9).at(40, Action.DRAINED)
    assert drained_without_job(story.history()) is None
    message = drained_without_job(story.sent(35, 9).history())
    assert message is not None
    assert message.startswith("the last job FAILED at 28.0 s")


def test_a_job_submitted_since_the_end_may_have_read_everything() -> None:
    story = ended(10, seen_s=15).at(16, Action.JOB_SUBMITTED, job="a", submitted_ms=stamp(12))
    assert drained_without_job(story.sent(30, 9).at(40, Action.DRAINED).history()) is None
