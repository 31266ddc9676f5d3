"""When a checkpoint may have completed; the engine's clock began 100 s before the run."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.checkpoint_completion import CompletionTimes
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


def earliest_s(
    *seen_s: float, until_s: float, duration_ms: int | None = 500, job: str = "a"
) -> float:
    """The earliest moment of a completion observed at 12 s, of a checkpoint triggered at 10 s and
    seen in progress at these moments."""
    story = Story().at(1, Action.JOB_SUBMITTED, job="a", submitted_ms=101_000)
    for at_s in seen_s:
        story.at(at_s, Action.CHECKPOINT_ACKNOWLEDGED, job=job, checkpoint=5)
    about = {"job": "a", "checkpoint": 5, "trigger_ms": 110_000}
    story.at(12, Action.CHECKPOINT_COMPLETED, **about, duration_ms=duration_ms)
    history = story.history()
    (completed,) = history.of(CheckpointCompleted)
    return CompletionTimes(history).earliest_ns(completed, round(until_s * 1e9)) / 1e9


@pytest.mark.parametrize(
    ("seen_s", "until_s", "expected_s"),
    [
        ((), 11, 10.5),
        ((10.2,), 11, 10.5),
        ((10.2, 11.0), 11, 12),
        ((11.0, 10.2), 11, 12),  # in any order
        ((11.0,), 11.1, 10.5),
    ],
)
def test_a_checkpoint_seen_in_progress_had_not_completed(
    seen_s: tuple[float, ...], until_s: float, expected_s: float
) -> None:
    assert earliest_s(*seen_s, until_s=until_s) == expected_s


def test_without_a_duration_and_for_another_job_only_the_observation_counts() -> None:
    assert earliest_s(until_s=11, duration_ms=None) == 12
    assert earliest_s(11.5, until_s=11, job="b") == 10.5
