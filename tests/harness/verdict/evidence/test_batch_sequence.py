"""Micro-batches in an order that cannot be, and what is written after the drain."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.batch_sequence import contradicted_batches
from streamquake.reports.record.event import Action
from tests.harness.histories import Story
from tests.harness.verdict.batch_story import JOB, BatchStory


def without(story: Story, *numbers: int) -> Story:
    """The story without what is recorded of some batches."""
    left = Story()
    for event in story.history():
        if event.value.get("checkpoint") not in numbers or event.action == Action.JOB_RESTORED:
            left.at(event.at_s, event.action, **event.value)
    return left


def found(story: Story) -> list[str]:
    return list(contradicted_batches(story.history()))


def test_batches_without_a_gap_are_possible_before_and_after_a_restart() -> None:
    assert found(BatchStory().batches(5, 5, 5)) == []
    assert found(BatchStory().batches(5, 5).fails(own=True).batches(5, 5)) == []


@pytest.mark.parametrize("missing", [(1,), (1, 2, 3)])
def test_batches_that_are_missing_are_named(missing: tuple[int, ...]) -> None:
    (message,) = found(without(BatchStory().batches(5, 5, 5, 5, 5), *missing))
    assert message.startswith(f"batch 0 of the query is followed by batch {missing[-1] + 1}, and")


def test_each_restart_may_hide_the_batch_that_it_repeats() -> None:
    story = BatchStory().batches(5, 5).fails(own=False).batches(5, 5, 5)
    assert found(without(story, 2)) == []
    (message,) = found(without(story, 2, 3))
    assert message.startswith("batch 1 of the query is followed by batch 4, and")


def restored_from(number: int, *, commits: bool = True) -> BatchStory:
    """Batches 0 and 1 completed, and were committed, and the driver ended over batch 2."""
    story = BatchStory().batches(5, 5)
    for each in (0, 1) if commits else ():
        story.at(4, Action.COMMIT_WRITTEN, job=JOB, checkpoint=each, step_ms=0)
    story.at(5, Action.JOB_RESTORED, job=JOB, checkpoint=number)
    return story


def goes_on_with(story: BatchStory, *numbers: int) -> BatchStory:
    for number in numbers:
        story.batch(5)
        story.history()[-1].value["checkpoint"] = number  # type: ignore[index]
    return story


@pytest.mark.parametrize(
    ("number", "after", "message"),
    [
        (1, 2, ""),
        (1, 3, ""),  # the next batch ran before the restored driver reported one
        (-1, 3, "the query was restored from batch -1 after the commit of 1"),
        (0, 2, "the query was restored from batch 0 after the commit of 1"),
        (3, 4, "the query was restored from batch 3, which had not completed"),
        (1, 1, "the query was restored from batch 1, and completed 1 again"),
    ],
)
def test_a_query_goes_on_after_its_last_commit(number: int, after: int, message: str) -> None:
    story = goes_on_with(restored_from(number), after)
    assert [each for each in found(story) if "followed by" not in each] == [message] * bool(message)


def test_batches_without_a_known_commit_may_run_again() -> None:
    """With progress tracked beside the batches, fewer commits are logged."""
    assert found(goes_on_with(restored_from(0, commits=False), 1, 2)) == []
    assert found(goes_on_with(restored_from(-1, commits=False), 0, 1)) == []


def test_a_driver_completes_each_batch_once() -> None:
    message = "batch 1 completed twice, and the query was not restored in between"
    assert found(goes_on_with(BatchStory().batches(5, 5), 1)) == [message]
    assert found(goes_on_with(restored_from(0, commits=False), 1)) == []


@pytest.mark.parametrize("own", [True, False, None])
def test_a_query_that_ended_over_its_last_batch_is_gone(own: bool | None) -> None:
    story = BatchStory().batches(5, 5).triggered()
    story.at(90, Action.CHECKPOINT_FAILED, job=JOB, checkpoint=2, type="micro-batch", own=own)
    gone = ["the query ended over batch 2, and is not recorded to run again"]
    assert found(story) == (gone if own else [])
    story.at(91, Action.JOB_RESTORED, job=JOB, checkpoint=1)
    assert found(story) == []


@pytest.mark.parametrize(
    ("rows", "late"), [(5, "batch 2 completed with records after the drain"), (0, "")]
)
def test_records_are_not_written_after_the_drain(rows: int, late: str) -> None:
    story = BatchStory().batches(5, 5)
    story.at(story.now_ms / 1000, Action.DRAINED)
    assert found(story) == []
    assert found(story.batch(rows).batch(rows)) == ([late] if late else [])


def test_a_batch_without_a_field_is_named() -> None:
    story = BatchStory().batches(5)
    event = story.history()[-1]
    del event.value["offsets"]  # type: ignore[attr-defined]
    message = f"event {event.index}, `checkpoint completed`, is recorded without its `offsets`"
    assert found(story) == [message]
