"""Events of jobs, and of queries, of which the record has no submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.submitted_jobs import event_of_unknown_job
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import Outcome
from tests.harness.histories import Story
from tests.harness.verdict.batch_story import BatchStory


def test_attempts_belong_to_the_submitted_query() -> None:
    assert event_of_unknown_job(BatchStory().batches(5, 5).history()) is None
    # An existing query is not submitted, and old records name none.
    assert event_of_unknown_job(Story().at(1, Action.TASK_ATTEMPT, job="q").history()) is None
    assert event_of_unknown_job(BatchStory().at(1, Action.TASK_ATTEMPT).history()) is None


@pytest.mark.parametrize(("job", "known"), [("mine", True), ("other", False), (None, True)])
def test_tasks_belong_to_a_submitted_job(job: str | None, known: bool) -> None:
    story = Story().at(1, Action.JOB_SUBMITTED, job="mine", vertices=())
    story.at(2, Action.TASK_CHANGED, job=job, vertex="v", subtask=0, attempt=0, state="RUNNING")
    message = "`task changed` is recorded of the job other, which was not submitted"
    assert event_of_unknown_job(story.history()) == (None if known else message)


@pytest.mark.parametrize(
    "action",
    [
        Action.JOB_RUNNING,
        Action.JOB_FAILING,
        Action.JOB_RESTARTING,
        Action.JOB_RESTORED,
        Action.JOB_ENDED,
        Action.CHECKPOINT_TRIGGERED,
        Action.CHECKPOINT_COMPLETED,
        Action.COMMIT_WRITTEN,
        Action.EXECUTOR_ADDED,
    ],
)
def test_every_event_belongs_to_a_submitted_job(action: Action) -> None:
    story = Story().at(1, Action.JOB_SUBMITTED, job="first").at(2, Action.JOB_SUBMITTED, job="next")
    story.at(3, action, job="first").at(4, action, job="next")
    assert event_of_unknown_job(story.history()) is None
    message = f"`{action}` is recorded of the job other, which was not submitted"
    assert event_of_unknown_job(story.at(5, action, job="other").history()) == message


def test_an_attempt_of_another_query_decides_nothing(tmp_path: Path) -> None:
    story = BatchStory().batches(5)
    story.at(story.now_ms / 1000, Action.TASK_ATTEMPT, job="other", batch=0, stage=0, task=0)
    result = Execution().check(story.judged(tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    reasons = [each.detail["reason"] for each in result.findings]
    assert "`task attempt` is recorded of the job other, which was not submitted" in reasons
