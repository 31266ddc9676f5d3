"""Restart loops because of failed checkpoints, per job, and the findings about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamquake.harness.verdict.evidence import checkpoint_findings as findings
from streamquake.harness.verdict.evidence.checkpoint_loop import (
    EXCEEDED,
    RestartLoop,
    restart_loops_of,
    tolerable_restarts,
)
from streamquake.harness.verdict.evidence.checkpoints import Checkpoint, checkpoints_of
from streamquake.reports.record.event import Action
from tests.harness.histories import Story
from tests.harness.verdict.checkpoint_story import (
    JOB,
    PLACES,
    CheckpointStory,
    part,
    stamp,
    unaligned,
)


def falls(reported: Story, at_s: float, job: str, back_to: int | None, **more: Any) -> Story:
    """A failure, by default because of checkpoints, and the restart after it."""
    reported.at(at_s, Action.JOB_FAILING, job=job, **{"cause": f"{EXCEEDED}.", **more})
    reported.at(at_s + 1, Action.JOB_RESTARTING, job=job)
    if back_to is not None:
        reported.at(at_s + 2, Action.JOB_RESTORED, job=job, checkpoint=back_to)
    return reported


def test_restarts_of_one_job_from_one_checkpoint_are_a_loop() -> None:
    recorded = Story()
    for change in range(3):
        falls(recorded, 10 + 10 * change, "a", 4, cause=f"{EXCEEDED}: {change}")
        falls(recorded, 15 + 10 * change, "b", 4 if change else 3)
        falls(recorded, 16 + 10 * change, "c", None)
    loops = {loop.job: loop for loop in restart_loops_of(recorded.history())}
    assert {*loops} == {"a", "c"}, "two may be chance"
    assert loops["a"] == RestartLoop(
        job="a", checkpoint=4, failed_s=(10, 20, 30), cause=f"{EXCEEDED}: 0", over_batch=False
    )
    assert loops["c"].checkpoint is None
    assert tolerable_restarts(recorded.history()) == 9


@pytest.mark.parametrize(
    ("completed", "loops"),
    [
        ({}, 1),
        ({"job": "b"}, 1),
        ({"job": "a"}, 0),
        ({"job": "a", "type": "SAVEPOINT"}, 1),  # no failure sets the job back to one
    ],
)
def test_a_job_that_completes_checkpoints_between_its_failures_is_in_no_loop(
    completed: dict[str, str], loops: int
) -> None:
    """Where its restores were not observed; with them, the restored checkpoint decides."""
    recorded, restored = Story(), Story()
    for change in range(3):
        for story in (recorded, restored) if completed else ():
            story.at(8 + 10 * change, Action.CHECKPOINT_COMPLETED, checkpoint=change, **completed)
        falls(recorded, 10 + 10 * change, "a", None)
        falls(restored, 10 + 10 * change, "a", 4)
    assert len(restart_loops_of(recorded.history())) == loops
    assert len(restart_loops_of(restored.history())) == 1


def test_a_checkpoint_that_completed_before_the_first_failure_is_no_progress_after_it() -> None:
    """The engine's stamps tell, although it was observed after the failure."""
    recorded = CheckpointStory().submitted()
    for change in range(3):
        recorded.failing(10 + 10 * change, cause=f"{EXCEEDED}.")
    done = {"trigger_ms": stamp(9.5), "duration_ms": 300}
    recorded.at(10.3, Action.CHECKPOINT_COMPLETED, job=JOB, checkpoint=1, **done)
    assert len(restart_loops_of(recorded.history())) == 1


@pytest.mark.parametrize(
    ("restored", "loops"),
    [
        ((4, None, 4), 1),
        ((None, 4, 4), 1),
        ((4, 4, None), 1),
        ((None, None, 4), 1),
        ((3, None, 4), 0),
    ],
)
def test_a_restore_that_was_not_observed_hides_no_loop(
    restored: tuple[int | None, ...], loops: int
) -> None:
    recorded = Story()
    for change, back_to in enumerate(restored):
        falls(recorded, 10 + 10 * change, "a", back_to)
    assert [loop.checkpoint for loop in restart_loops_of(recorded.history())] == [4] * loops


def test_a_checkpoint_between_the_failures_ends_a_loop_where_no_restore_was_observed() -> None:
    recorded = falls(falls(Story(), 10, "a", 4), 20, "a", None)
    recorded.at(25, Action.CHECKPOINT_COMPLETED, checkpoint=5, job="a")
    assert restart_loops_of(falls(recorded, 30, "a", None).history()) == ()


@pytest.mark.parametrize(
    ("more", "restarts"),
    [({}, 1), ({"cause": "lost"}, 0), ({"cause": "Boom", "own": True}, 1), ({"cause": None}, 0)],
)
def test_only_failures_because_of_checkpoints_count(more: dict[str, Any], restarts: int) -> None:
    assert tolerable_restarts(falls(Story(), 10, "a", 4, **more).history()) == restarts


@pytest.mark.parametrize(
    ("checkpoint", "over_batch", "what", "where"),
    [
        (3, False, "tolerable-failures loop", "checkpoint 3"),
        (0, True, "one batch fails again and again", "checkpoint 0"),
        (-1, True, "one batch fails again and again", "its beginning"),
        (None, False, "tolerable-failures loop", "its beginning"),
    ],
)
def test_a_loop_names_the_checkpoint_it_returns_to(
    checkpoint: int | None, over_batch: bool, what: str, where: str
) -> None:
    times = (1.25, 2.0, 3.36)
    loop = RestartLoop(
        job="a", checkpoint=checkpoint, failed_s=times, cause="x", over_batch=over_batch
    )
    found = findings.restart_loop(loop)
    assert (found.what, found.where) == (what, where)
    assert found.detail == {
        "restarts": 3,
        "restored": checkpoint,
        "failed_s": [1.2, 2.0, 3.4],
        "cause": "x",
    }


def only(story: CheckpointStory) -> Checkpoint:
    (checkpoint,) = checkpoints_of(story.history())
    return checkpoint


@pytest.mark.parametrize("count", [6, 7, 8])
def test_at_most_six_missing_subtasks_are_named(count: int) -> None:
    missing = tuple(f"map/{number}" for number in range(count))
    found = findings.failed(replace(only(CheckpointStory().failed(1, 5)), missing=missing))
    assert found.what == "expired"
    assert found.detail["missing"] == [*missing[:6], *{7: ["1 more"], 8: ["2 more"]}.get(count, [])]


def test_a_single_in_flight_byte_counts_as_persisted() -> None:
    parts = unaligned(*(part(*place, unaligned=True) for place in PLACES[1:]))
    one = [{**parts[0], "persisted_bytes": 1}, *parts[1:]]
    held = only(CheckpointStory().submitted().completed(1, 5, subtasks=one))
    assert findings.wrongly_persisted(held, wanted=True) is None
    wrong = findings.wrongly_persisted(held, wanted=False)
    assert wrong is not None
    assert wrong.what == "in-flight bytes persisted"
