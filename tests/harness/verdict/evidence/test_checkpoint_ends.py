"""Checkpoints without a recorded end, and how many a job takes at a time."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.checkpoint_ends import (
    checkpoints_without_end,
    max_concurrent_of,
)
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from tests.harness.histories import Story


def test_a_record_without_events_has_no_checkpoint_without_end() -> None:
    assert checkpoints_without_end(History([]), []) == []


@pytest.mark.parametrize(
    ("config", "known"),
    [
        ({"max_concurrent": 3}, {"job": 3}),
        ({"max_concurrent": 0}, {}),
        ({"max_concurrent": True}, {}),
        ({}, {}),
        (None, {}),
    ],
)
def test_only_a_positive_number_says_how_many_a_job_takes_at_a_time(
    config: dict[str, Any] | None, known: dict[str, int]
) -> None:
    story = Story().at(1, Action.JOB_SUBMITTED, job="job", config=config)
    assert max_concurrent_of(story.history()) == known
