"""Checkpoints whose number, acknowledgement or folder contradicts those of the others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.checkpoint_numbers import contradicted_checkpoints
from streamquake.reports.record.event import MICRO_BATCH, Action
from tests.harness.histories import Story
from tests.harness.verdict.checkpoint_story import JOB, CheckpointStory, stamp


def taken(*numbers: int, **changed: Any) -> CheckpointStory:
    """Checkpoints with these numbers, one every five seconds; `changed` are fields of the last."""
    story = CheckpointStory().submitted().running(2)
    for nth, number in enumerate(numbers, start=1):
        story.completed(number, 5.0 * nth, **(changed if nth == len(numbers) else {}))
    return story


def messages(story: Story) -> list[str]:
    return list(dict.fromkeys(contradicted_checkpoints(story.history())))


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((1, 2, 3, 4), []),
        ((7, 9, 12), []),  # some are not seen
        ((1, 2250, 3), [2250]),
        ((3, 2, 5), [2]),
        ((1, 2, 3, 1, 2), []),  # counted anew
    ],
)
def test_checkpoints_are_numbered_in_the_order_of_their_triggers(
    numbers: Iterable[int], found: list[int]
) -> None:
    values = list(numbers)
    expected = [
        f"checkpoint {number} was triggered between checkpoints {values[0]} and {values[-1]}"
        for number in found
    ]
    assert messages(taken(*values)) == expected


def test_a_completed_checkpoint_that_no_event_triggered_is_named() -> None:
    """It has the trigger of another one."""
    story = taken(1, 2, 3)
    about = {"type": "CHECKPOINT", "trigger_ms": stamp(10), "path": "/chk-90"}
    story.at(16, Action.CHECKPOINT_COMPLETED, job=JOB, checkpoint=90, **about)
    assert messages(story) == ["checkpoint 90 was triggered between checkpoints 2 and 3"]


@pytest.mark.parametrize(
    ("kind", "number", "told"),
    [("CHECKPOINT", -2, True), (MICRO_BATCH, 0, False), (None, 0, False)],
)
def test_numbers_begin_at_one(kind: str | None, number: int, told: bool) -> None:
    story = Story().at(1, Action.CHECKPOINT_TRIGGERED, job=JOB, checkpoint=number, type=kind)
    message = f"`checkpoint triggered` is recorded of checkpoint {number}"
    assert messages(story) == ([message] if told else [])


@pytest.mark.parametrize(
    ("ack_ms", "told"), [(stamp(3), True), (-7, True), (stamp(5.1), False), (-1, False)]
)
def test_a_checkpoint_is_acknowledged_after_its_trigger(ack_ms: int, told: bool) -> None:
    about = {"checkpoint": 9, "type": "CHECKPOINT", "trigger_ms": stamp(5), "ack_ms": ack_ms}
    story = CheckpointStory().submitted()
    story.at(6, Action.CHECKPOINT_ALL_ACKNOWLEDGED, job=JOB, **about)
    message = "checkpoint 9 is recorded as acknowledged {:,.1f} s before its trigger"
    assert messages(story) == ([message.format((stamp(5) - ack_ms) / 1000)] if told else [])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"path": "other"}, True),
        ({"path": "/chk-9"}, True),
        ({"path": "/another/chk-3"}, True),
        ({"path": None}, False),
        ({"path": "/savepoint-1", "type": "SAVEPOINT"}, False),
    ],
)
def test_checkpoints_of_one_job_are_stored_side_by_side(
    changed: dict[str, Any], told: bool
) -> None:
    message = "the folder of checkpoint 3 is not beside that of the others, by its number"
    assert messages(taken(1, 2, 3, **changed)) == ([message] if told else [])


def test_another_storage_may_name_checkpoints_otherwise() -> None:
    story = CheckpointStory().submitted().completed(1, 5, path="in memory")
    assert messages(story.completed(2, 10, path="in memory")) == []


def test_no_stamp_is_compared_where_a_fault_moved_the_clocks() -> None:
    story = taken(1, 2250, 3)
    story.at(1, Action.FAULT_CALLED, step=0, fault="clock_skew", targets=[])
    assert messages(story) == []


def test_contradictory_checkpoints_make_a_run_undecided(tmp_path: Path) -> None:
    found = Execution().check(taken(1, 2250, 3).judged(tmp_path))
    reasons = [each.detail["reason"] for each in found.findings]
    assert "checkpoint 2250 was triggered between checkpoints 1 and 3" in reasons
