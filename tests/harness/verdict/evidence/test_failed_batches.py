"""Batches that completed although all of their tasks failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.failed_batches import completed_without_tasks
from streamquake.reports.record.event import Action
from streamquake.reports.record.job_events import TaskAttempt
from streamquake.reports.record.outcome import Outcome
from tests.harness.verdict.batch_story import BatchStory


def failing(story: BatchStory, *batches: int, but: int = 0) -> BatchStory:
    """The attempts of these batches fail, `but` some of each."""
    for batch in batches:
        of_batch = [each for each in story.history().of(TaskAttempt) if each.batch == batch]
        for each in of_batch[but:]:
            each.value["state"] = "FAILED"  # type: ignore[index]
    return story


def test_a_batch_with_rows_has_a_task_that_succeeded() -> None:
    assert list(completed_without_tasks(BatchStory().batches(5, 5).history())) == []
    assert list(completed_without_tasks(failing(BatchStory().batches(5, 5), 1).history())) == [
        "batch 1 completed with 5 rows, and no attempt of its tasks is recorded to have succeeded"
    ]


@pytest.mark.parametrize(("rows", "but"), [(5, 1), (0, 0)])
def test_failed_attempts_of_other_batches_prove_nothing(rows: int, but: int) -> None:
    story = failing(BatchStory().batches(rows), 0, but=but)
    assert list(completed_without_tasks(story.history())) == []


def test_another_driver_may_have_run_it_without_failure() -> None:
    story = BatchStory().batches(5)
    failing(story, 0)
    again = {"job": "query", "batch": 0, "stage": 1, "task": 0, "state": "SUCCESS"}
    story.at(9.0, Action.TASK_ATTEMPT, **again)
    assert list(completed_without_tasks(story.history())) == []


@pytest.mark.parametrize(
    ("states", "failed"),
    [
        ({0: ["SUCCESS"], 1: ["FAILED"]}, 1),
        ({0: ["FAILED", "FAILED"], 1: ["SUCCESS"], 2: ["FAILED", "SUCCESS"]}, 0),
        ({0: ["SUCCESS"], 1: ["FAILED", "SUCCESS"]}, None),
        ({0: ["SUCCESS"], 1: ["KILLED"]}, None),  # its result was not needed
        # Events are missing.
        ({0: ["SUCCESS"], 1: ["FAILED"], 3: ["SUCCESS"]}, None),
        ({0: ["SUCCESS"], 1: ["FAILED"], 2: ["FAILED"]}, None),
        ({None: ["FAILED", "SUCCESS"]}, None),
    ],
)
def test_each_partition_of_a_completed_batch_succeeded(
    states: dict[int | None, list[str]], failed: int | None
) -> None:
    story = BatchStory().batches(5)
    batch = story.history().of(TaskAttempt)
    for event in batch:
        event.value["batch"] = None  # type: ignore[index]
    for partition, ended in states.items():
        for state in ended:
            about = {"job": "query", "batch": 0, "stage": 1, "task": 0, "partition": partition}
            story.at(9.0, Action.TASK_ATTEMPT, **about, state=state)
    message = (
        f"batch 0 completed with 5 rows, and no attempt of its partition {failed} is recorded to "
        "have succeeded"
    )
    found = list(completed_without_tasks(story.history()))
    assert found == ([] if failed is None else [message])


def test_failed_tasks_of_a_completed_batch_decide_nothing(tmp_path: Path) -> None:
    result = Execution().check(failing(BatchStory().batches(5), 0).judged(tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    reasons = [each.detail["reason"] for each in result.findings]
    assert any(reason.startswith("batch 0 completed with 5 rows") for reason in reasons)
