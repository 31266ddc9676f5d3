"""Checkpoints and restarts from a history with late, repeated or missing events."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.checkpoint_figures import checkpoint_figures
from streamquake.harness.verdict.evidence.checkpoints import checkpoints_of
from streamquake.harness.verdict.evidence.restores import restarts_of
from streamquake.reports.record.event import Action
from tests.harness.verdict.checkpoint_story import (
    EXPIRED,
    JOB,
    PLACES,
    VERTICES,
    CheckpointStory,
    part,
)


def test_a_checkpoint_is_one_value_from_its_trigger_to_its_end() -> None:
    story = CheckpointStory().submitted().completed(7, 10, 0.5).files(7, 11, 3).triggered(8, 20)
    done, started = checkpoints_of(story.history())

    assert (done.number, done.triggered_s, done.ended_s) == (7, 10, 10.5)
    assert done.completed
    assert done.unaligned
    assert len(done.files or ()) == 3
    assert [p.where for p in done.parts or ()] == ["source/0", "source/1", "map/0", "map/1"]
    assert (started.number, started.ended_s, started.completed, started.parts) == (
        8,
        None,
        False,
        None,
    )


@pytest.mark.parametrize(
    ("at_trigger", "at_end", "kind"),
    [
        ("SAVEPOINT", None, "SAVEPOINT"),
        ("micro-batch", None, "micro-batch"),
        ("CHECKPOINT", None, None),  # it may have become unaligned
        ("CHECKPOINT", "UNALIGNED_CHECKPOINT", "UNALIGNED_CHECKPOINT"),
    ],
)
def test_the_type_is_that_of_the_trigger_where_the_end_lacks_it(
    at_trigger: str, at_end: str | None, kind: str | None
) -> None:
    story = CheckpointStory().submitted()
    about = {"job": JOB, "checkpoint": 1}
    story.at(10, Action.CHECKPOINT_TRIGGERED, **about, type=at_trigger)
    story.at(11, Action.CHECKPOINT_COMPLETED, **about, **({"type": at_end} if at_end else {}))

    [found] = checkpoints_of(story.history())
    assert found.kind == kind


def test_sources_are_known_by_the_edges_and_in_flight_bytes_by_their_vertices() -> None:
    parts = [part("v1", 0, start_delay_ms=70), part("v2", 0, start_delay_ms=90, persisted_bytes=9)]
    recorded = checkpoint_figures(
        checkpoints_of(CheckpointStory().submitted().completed(1, 5, subtasks=parts).history())
    )
    assert (recorded["source_start_delay_ms"], recorded["persisting_vertices"]) == (70, 1)

    older = CheckpointStory()
    older.at(1, Action.JOB_SUBMITTED, job=JOB, vertices=list(VERTICES))
    older.completed(1, 5, subtasks=parts)
    assert checkpoint_figures(checkpoints_of(older.history()))["source_start_delay_ms"] is None


def test_the_longest_and_the_shortest_wait_of_two_sources_are_reported() -> None:
    waits = {("v1", 0): 20, ("v1", 1): 70, ("v2", 0): 9, ("v2", 1): 5}
    parts = [part(*place, start_delay_ms=waited) for place, waited in waits.items()]
    story = CheckpointStory()
    story.at(1, Action.JOB_SUBMITTED, job=JOB, vertices=list(VERTICES), edges=[])
    recorded = checkpoint_figures(checkpoints_of(story.completed(1, 5, subtasks=parts).history()))

    assert recorded["source_start_delay_ms"] == 70
    assert recorded["least_source_start_delay_ms"] == 9, "the slowest subtask of the quicker source"


def test_the_duration_gives_the_begin_of_a_checkpoint_without_a_recorded_trigger() -> None:
    story = CheckpointStory()
    story.at(10, Action.CHECKPOINT_COMPLETED, checkpoint=1, duration_ms=4000)
    assert checkpoints_of(story.history())[0].triggered_s == 6


def test_an_unmeasured_phase_counts_as_zero() -> None:
    parts = [part("v1", 0, start_delay_ms=-1, alignment_ms=-1, duration_ms=3)]
    story = CheckpointStory().completed(1, 10, subtasks=parts)
    (read,) = checkpoints_of(story.history())
    assert read.parts is not None
    assert read.parts[0].barriers_ms == 0
    assert read.parts[0].where == "v1/0", "without the graph the vertex has no name"


def test_the_details_show_acknowledgements_where_no_progress_is_recorded() -> None:
    story = CheckpointStory().submitted()
    story.at(
        18,
        Action.CHECKPOINT_FAILED,
        job=JOB,
        checkpoint=1,
        reason=EXPIRED,
        duration_ms=8000,
        subtasks=[part(*place) for place in PLACES[:3]],
    )
    (read,) = checkpoints_of(story.history())
    assert (read.acknowledged, read.subtasks, read.missing) == (3, 4, ("map/1",))


def test_missing_subtasks_are_not_guessed_after_a_rescale() -> None:
    story = CheckpointStory().submitted().triggered(1, 10)
    story.at(11, Action.CHECKPOINT_ACKNOWLEDGED, job=JOB, checkpoint=1, acknowledged=1, subtasks=2)
    story.at(
        18,
        Action.CHECKPOINT_FAILED,
        job=JOB,
        checkpoint=1,
        reason=EXPIRED,
        duration_ms=8000,
        subtasks=[part("v1", 0)],
    )
    (read,) = checkpoints_of(story.history())
    assert (read.acknowledged, read.subtasks, read.missing) == (1, 2, ())


def test_the_checkpoints_of_two_jobs_are_separate() -> None:
    story = CheckpointStory().completed(1, 10).completed(1, 20, job="next", type="CHECKPOINT")
    assert [(c.job, c.unaligned) for c in checkpoints_of(story.history())] == [
        (JOB, True),
        ("next", False),
    ]


def test_each_restart_has_its_own_attempts_and_its_own_end() -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5)
    story.failing(13).restored(1, 14).failing(16).running(16.3).restored(1, 17)
    story.running(18, (10, 20, 900, 40))

    first, second = restarts_of(story.history())

    assert (first.broke_s, first.running_s, first.initializing_ms) == (13, 16.3, 40)
    assert (second.broke_s, second.running_s, second.initializing_ms) == (16, 18, 900)
    assert (first.slowest, second.slowest) == ("map/1", "map/0")
    assert second.phases["restart_s"] == pytest.approx(2)


def test_a_checkpoint_in_progress_has_its_acknowledgements() -> None:
    story = CheckpointStory().triggered(1, 5)
    story.at(6, Action.CHECKPOINT_ACKNOWLEDGED, job=JOB, checkpoint=1, acknowledged=3, subtasks=4)
    (read,) = checkpoints_of(story.history())
    assert (read.acknowledged, read.subtasks, read.unacknowledged) == (3, 4, 1)
    assert (read.reason, read.path) == ("", "")
