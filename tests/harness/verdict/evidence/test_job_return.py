"""When a job ran again, by what was observed and by the engine's stamps."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.job_return import (
    checkpoints_since,
    contradicted_triggers,
    ran_by_ns,
    running_after,
)
from streamquake.reports.record.event import MICRO_BATCH, Action
from streamquake.reports.record.job_events import JobEnded, JobFailing, JobRunning
from tests.harness.histories import Story

EPOCH_MS = 1_700_000_000_000


def stamp(at_s: float) -> int:
    return EPOCH_MS + round(at_s * 1000)


def failed(job: str = "job", running_s: float = 25.0, **completed: Any) -> Story:
    """A failure at 10 s, a restore at 11 s, `running` observed at 25 s, and a checkpoint that was
    triggered at 13 s and observed at 20 s."""
    story = Story().at(5, Action.JOB_SUBMITTED, job="job", submitted_ms=stamp(5))
    story.at(10, Action.JOB_FAILING, job="job", failed_ms=stamp(10))
    story.at(11, Action.JOB_RESTORED, job="job", checkpoint=3, restored_at_ms=stamp(11))
    about = {"job": job, "checkpoint": 4, "type": "CHECKPOINT", "trigger_ms": stamp(13)}
    story.at(20, Action.CHECKPOINT_COMPLETED, **{**about, **completed})
    return story.at(running_s, Action.JOB_RUNNING, job="job")


def ran_s(story: Story) -> float:
    history = story.history()
    failure, running = history.first(JobFailing), history.first(JobRunning)
    assert failure is not None
    assert running is not None
    return ran_by_ns(history, failure, running) / 1e9


def test_a_completed_checkpoint_shows_that_the_job_ran_when_it_was_triggered() -> None:
    assert ran_s(failed()) == 13
    assert ran_s(failed(running_s=12.0)) == 12, "the observation was earlier"


@pytest.mark.parametrize(
    "changed",
    [
        {"job": "another"},
        {"trigger_ms": None},
        {"trigger_ms": stamp(10.5)},
        {"trigger_ms": stamp(11)},
        {"type": MICRO_BATCH},
    ],
)
def test_other_checkpoints_show_nothing(changed: dict[str, Any]) -> None:
    """One from before the restore was triggered by the attempt that failed; a batch is planned
    before its tasks run."""
    assert ran_s(failed(**changed)) == 25


def test_the_first_of_several_checkpoints_counts() -> None:
    story = failed()
    for number, at_s in ((5, 12.0), (6, 16.0)):
        about = {"job": "job", "checkpoint": number, "type": "CHECKPOINT"}
        story.at(21, Action.CHECKPOINT_COMPLETED, **about, trigger_ms=stamp(at_s))
    assert ran_s(story) == 12


@pytest.mark.parametrize(
    ("began_s", "changed", "expected_s"),
    [
        (12.0, {}, 12),
        (14.0, {}, 13),
        (12.0, {"job": "another"}, 13),
        (12.0, {"checkpoint": 5}, 13),  # it is not known to complete
    ],
)
def test_of_different_triggers_of_a_checkpoint_the_earliest_counts(
    began_s: float, changed: dict[str, Any], expected_s: float
) -> None:
    about = {"job": "job", "checkpoint": 4, "type": "CHECKPOINT", "trigger_ms": stamp(began_s)}
    story = failed().at(20, Action.CHECKPOINT_TRIGGERED, **{**about, **changed})
    assert ran_s(story) == expected_s


@pytest.mark.parametrize(
    ("changed", "messages"),
    [
        ({}, ["checkpoint 4 is recorded with triggers that are 1.0 s apart"]),
        ({"trigger_ms": stamp(13)}, []),
        ({"trigger_ms": None}, []),
        ({"checkpoint": 5}, []),
        ({"job": "another"}, []),
        ({"type": MICRO_BATCH}, []),
    ],
)
def test_the_events_of_a_checkpoint_report_the_same_trigger(
    changed: dict[str, Any], messages: list[str]
) -> None:
    about = {"job": "job", "checkpoint": 4, "type": "CHECKPOINT", "trigger_ms": stamp(12)}
    kind = {key: value for key, value in changed.items() if key == "type"}
    story = failed(**kind).at(20, Action.CHECKPOINT_TRIGGERED, **{**about, **changed})
    assert [each.message for each in contradicted_triggers(story.history())] == messages


def test_a_restore_after_the_job_ran_is_of_another_failure() -> None:
    story = failed().at(30, Action.JOB_RESTORED, job="job", checkpoint=4, restored_at_ms=stamp(30))
    assert ran_s(story) == 13


def after(story: Story, kind: type[JobFailing | JobEnded] = JobFailing) -> float | None:
    history = story.history()
    failure = history.first(kind)
    assert failure is not None
    running = running_after(history, failure)
    return None if running is None else running.at_s


def test_a_job_runs_again_itself_or_by_its_replacement() -> None:
    story = Story().at(1, Action.JOB_SUBMITTED, job="other").at(5, Action.JOB_FAILING, job="job")
    assert after(story) is None
    story.at(6, Action.JOB_RUNNING, job="other")
    assert after(story) is None, "it was submitted before the failure"
    story.at(7, Action.JOB_SUBMITTED, job="next").at(9, Action.JOB_RUNNING, job="next")
    assert after(story) == 9
    story.at(8, Action.JOB_RUNNING, job="job")
    assert after(story) == 8, "the earliest"
    assert after(Story().at(5, Action.JOB_FAILING, job="job").at(5, Action.JOB_RUNNING, job="job"))


def test_a_job_that_ended_does_not_run_again() -> None:
    story = Story().at(5, Action.JOB_ENDED, job="job", state="FAILED")
    story.at(7, Action.JOB_RUNNING, job="job")
    assert after(story, JobEnded) is None
    story.at(8, Action.JOB_SUBMITTED, job="next").at(9, Action.JOB_RUNNING, job="next")
    assert after(story, JobEnded) == 9


def test_events_without_a_job_are_of_the_only_one() -> None:
    assert after(Story().at(5, Action.JOB_FAILING).at(6, Action.JOB_RUNNING, job="job")) == 6
    assert after(Story().at(5, Action.JOB_FAILING, job="job").at(6, Action.JOB_RUNNING)) == 6


def checkpoint(story: Story, number: int, triggered_s: float, kind: str | None) -> Story:
    story.at(triggered_s, Action.CHECKPOINT_TRIGGERED, checkpoint=number, type=kind)
    return story.at(triggered_s + 1, Action.CHECKPOINT_COMPLETED, checkpoint=number)


@pytest.mark.parametrize(
    ("kind", "triggered_s", "counts"),
    [
        ("CHECKPOINT", 10.0, True),
        ("CHECKPOINT", 9.9, False),
        (None, 10.0, True),
        (None, 9.9, False),
        (MICRO_BATCH, 9.9, True),
        (MICRO_BATCH, 8.0, False),
        ("SAVEPOINT", 12.0, False),
        ("SYNC_SAVEPOINT", 12.0, False),
    ],
)
def test_a_checkpoint_counts_that_was_triggered_since_the_job_ran(
    kind: str | None, triggered_s: float, counts: bool
) -> None:
    """The state was restored at 9.5 s, and the job ran at 10 s."""
    history = checkpoint(Story(), 1, triggered_s, kind).history()
    found = list(checkpoints_since(history, 9_500_000_000, 10_000_000_000))
    assert [event.checkpoint for event in found] == ([1] if counts else [])


def test_without_a_restore_a_batch_counts_from_the_run_on() -> None:
    history = checkpoint(Story(), 1, 9.9, MICRO_BATCH).history()
    assert list(checkpoints_since(history, None, 10_000_000_000)) == []
    assert [e.checkpoint for e in checkpoints_since(history, None, 9_900_000_000)] == [1]
    assert list(checkpoints_since(history, None, None)) == []


def test_a_completion_without_its_trigger_or_before_the_run_does_not_count() -> None:
    story = Story().at(12, Action.CHECKPOINT_COMPLETED, checkpoint=7)
    story.at(11, Action.CHECKPOINT_TRIGGERED, checkpoint=8, type="CHECKPOINT")
    story.at(9, Action.CHECKPOINT_COMPLETED, checkpoint=8)
    assert list(checkpoints_since(story.history(), None, 10_000_000_000)) == []


@pytest.mark.parametrize(
    ("submitted", "job", "counts"),
    [(("a",), "a", True), (("a",), "b", False), (("a", "b"), "b", True), ((), "b", True)],
)
def test_a_checkpoint_of_a_job_that_was_never_submitted_does_not_count(
    submitted: tuple[str, ...], job: str, counts: bool
) -> None:
    """An existing job is not submitted, and older records name no job."""
    story = Story()
    for each in submitted:
        story.at(1, Action.JOB_SUBMITTED, job=each)
    story.at(11, Action.CHECKPOINT_TRIGGERED, checkpoint=5, job=job)
    story.at(12, Action.CHECKPOINT_COMPLETED, checkpoint=5, job=job)
    assert bool(list(checkpoints_since(story.history(), None, 10**10))) == counts
    unnamed = story.at(2, Action.JOB_SUBMITTED)
    assert list(checkpoints_since(unnamed.history(), None, 10**10))
    older = Story().at(1, Action.JOB_SUBMITTED, job="a").checkpoint(5, 11, 12)
    assert len(list(checkpoints_since(older.history(), None, 10**10))) == 1
