"""Which tasks of micro-batches were repeated, by the ends of their attempts."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.attempts import LOST, RepeatedTasks, repeats_after
from streamquake.reports.record.event import Action
from tests.harness.histories import Story

AFTER_S = 10.0


def ended(reported: Story, at_s: float, number: int, stage: int, task: int, **more: Any) -> Story:
    usual = {"kind": "Success", "state": "FINISHED", "stage_attempt": 0, "node": "worker-1"}
    return reported.at(
        at_s,
        Action.TASK_ATTEMPT,
        **{**usual, "batch": number, "stage": stage, "task": task, **more},
    )


def found(reported: Story) -> RepeatedTasks:
    return repeats_after(reported.history(), round(AFTER_S * 1e9), {"worker-1"})


def test_an_attempt_of_an_empty_batch_counts() -> None:
    recorded = ended(Story(), 11, 4, 7, 0, kind=LOST, state="FAILED", batch=None)

    assert found(recorded).count == 1


def test_each_task_is_represented_by_its_first_failed_attempt() -> None:
    recorded = ended(Story(), 9.9, 3, 7, 0, kind=LOST, state="FAILED")
    ended(recorded, 10, 4, 7, 0, kind=LOST, state="FAILED")
    ended(recorded, 11, 4, 7, 0, kind=LOST, state="FAILED")
    ended(recorded, 12, 4, 7, 1, kind=LOST, state="FAILED", node="worker-2")
    ended(recorded, 13, 4, 8, 0, kind="FetchFailed", state="FAILED")
    ended(recorded, 14, 4, 7, 0, stage_attempt=1)
    ended(recorded, 15, 4, 8, 1, stage_attempt=1)
    ended(recorded, 16, 4, 8, 2)
    ended(recorded, 17, 7, 9, 0)

    repeats = found(recorded)

    assert {place: event.at_s for place, event in repeats.affected.items()} == {(4, 7, 0): 10}
    assert {place: event.at_s for place, event in repeats.shuffle.items()} == {
        (4, 8, 0): 13,
        (4, 8, 1): 15,
    }
    assert {place: event.at_s for place, event in repeats.unexplained.items()} == {(4, 7, 1): 12}
    assert (repeats.count, repeats.tasks, repeats.kind) == (4, 5, "region")


def test_all_tasks_are_those_of_the_affected_batches() -> None:
    recorded = ended(Story(), 11, 4, 7, 0, kind=LOST, state="FAILED")
    repeats = found(ended(recorded, 12, 7, 4, 0))
    assert (repeats.count, repeats.tasks, repeats.kind) == (1, 1, "task")


def test_a_batch_that_failed_and_was_triggered_again_counts_as_repeated() -> None:
    recorded = Story().at(9, Action.CHECKPOINT_FAILED, checkpoint=3)
    recorded.at(9.5, Action.CHECKPOINT_TRIGGERED, checkpoint=4)
    for number in (3, 5):
        recorded.at(10.0 + number, Action.CHECKPOINT_TRIGGERED, checkpoint=number)
    recorded.at(10, Action.CHECKPOINT_FAILED, checkpoint=6)
    recorded.at(16, Action.CHECKPOINT_FAILED, checkpoint=5)
    recorded.at(17, Action.CHECKPOINT_TRIGGERED, checkpoint=5)
    recorded.at(18, Action.CHECKPOINT_TRIGGERED, checkpoint=6)
    repeats = found(recorded)
    assert (repeats.batches, repeats.kind) == ((5, 6), "job")
    assert found(Story()).kind is None


@pytest.mark.parametrize(
    ("job", "restored_s", "batches"), [("q", 11, (3,)), ("q", 9, ()), ("other", 11, ())]
)
def test_a_batch_triggered_before_and_after_a_restore_counts_as_repeated(
    job: str, restored_s: float, batches: tuple[int, ...]
) -> None:
    """Its failure is missing. Without a restore of its job after the moment, it may have been
    triggered once and recorded twice."""
    recorded = Story().at(8, Action.CHECKPOINT_TRIGGERED, job="q", checkpoint=3)
    recorded.at(restored_s, Action.JOB_RESTORED, job=job, checkpoint=2)
    for number in (3, 4):
        recorded.at(10.0 + number, Action.CHECKPOINT_TRIGGERED, job="q", checkpoint=number)
    assert found(recorded).batches == batches
