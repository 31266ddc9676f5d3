"""Which micro-batches fell behind the load, and which part of them was slow."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.batch_parts import attempts_of, parts_of
from streamquake.harness.verdict.evidence.batches import AT_ONCE_MS, batches_behind, settled_batches
from streamquake.harness.verdict.evidence.checkpoints import batches_of, checkpoints_of
from tests.harness.verdict.batch_story import EPOCH_MS, BatchStory, PartDurations


def late(story: BatchStory) -> list[int]:
    return [batch.number for batch in batches_behind(batches_of(story.history()))]


@pytest.mark.parametrize(
    ("waiting", "fell_behind"),
    [
        ((100, 50, 60, 50, 60), []),
        ((100, 50, 60, 90, 140, 60, 40), [1, 2, 3]),
        ((100, 50, 90, 70, 120, 100), []),
        ((0, 0, 10, 500, 600, 800), []),
        ((100, 50, 150), [1]),
        ((100, 60, 70, 60, 5, 70, 60), []),
        ((100, 50, 100), [1]),
        ((100, 50, 99), []),
        ((100, 50, 60, 60, 120), [3]),  # as many records as before are not more
        ((100, 0, 1), []),
        ((100, 0, 2), [1]),
    ],
)
def test_batches_fall_behind_while_the_waiting_records_grow_to_twice_as_many(
    waiting: tuple[int, ...], fell_behind: list[int]
) -> None:
    """The first batch with records compiles plans and does not count."""
    assert late(BatchStory().batches(*waiting)) == fell_behind


def test_the_first_batch_with_a_record_warms_its_driver_up() -> None:
    story = BatchStory().batches(0, 1, 5).fails(own=False).batches(0, 0, 1, 7)
    settled = settled_batches(batches_of(story.history()))
    assert [(batch.driver, batch.rows) for batch in settled] == [(0, 5), (1, 7)]


def test_idle_time_between_batches_is_no_back_pressure() -> None:
    story = BatchStory().batches(100, 50)
    for waiting in (100, 200, 400):
        story.batch(waiting, rest_ms=1000)
    assert late(story) == []


@pytest.mark.parametrize(("rest_ms", "fell_behind"), [(AT_ONCE_MS, [1]), (AT_ONCE_MS + 1, [])])
def test_a_batch_that_begins_soon_after_the_one_before_begins_at_once(
    rest_ms: int, fell_behind: list[int]
) -> None:
    assert late(BatchStory().batches(100, 50).batch(200, rest_ms=rest_ms)) == fell_behind


def test_a_backlog_from_before_counts_as_the_begin_of_the_growth() -> None:
    """More than twice the usual number of records waited already."""
    assert late(BatchStory().batches(100, 10, 10).batch(60, rest_ms=1000).batch(70)) == []
    assert late(BatchStory().batches(100, 10, 10).batch(60, rest_ms=1000).batch(120)) == [3]


def test_records_left_by_a_limit_count_as_waiting() -> None:
    story = BatchStory().batches(100, 50)
    for waiting in (60, 80, 100, 120):
        story.batch(waiting, rows=50)
    assert late(story) == [1, 2, 3, 4]
    *_, last = batches_of(story.history())
    assert (last.rows, last.waiting) == (50, 120)


def test_a_batch_is_known_by_its_trigger_where_its_end_lacks_the_type() -> None:
    (batch,) = batches_of(BatchStory().batch(10, type=None).history())
    assert batch.rows == 10


def test_the_reported_begin_of_a_batch_counts_not_its_log_entry() -> None:
    """With asynchronous progress tracking some batches have no log entries."""
    unlogged: dict[str, Any] = {
        "trigger_ms": EPOCH_MS + 5_000,
        "duration_ms": 0,
        "began_ms": EPOCH_MS + 2_000,
    }
    (batch,) = batches_of(BatchStory().batch(10, **unlogged).history())
    assert (batch.began_ms, batch.took_ms) == (EPOCH_MS + 2_000, PartDurations().whole)


def test_a_batch_repeated_by_another_driver_counts_twice() -> None:
    story = BatchStory().batches(10, 10).fails(own=False).batches(10, 80, 10)
    ended = [(c.number, c.completed) for c in checkpoints_of(story.history())]
    assert ended == [(0, True), (1, True), (2, False), (2, True), (3, True), (4, True)]
    assert [batch.driver for batch in batches_of(story.history())] == [0, 0, 1, 1, 1]
    assert late(story) == [], "the first batch of a driver does not count"


def test_the_parts_of_a_batch_add_up_to_its_duration() -> None:
    history = BatchStory().batch(10, PartDurations(source=300, sink=700, state=200)).history()
    (batch,) = batches_of(history)
    found = parts_of(batch, attempts_of(batch, history))
    assert found == {
        "source": 300,
        "operators and sink": 700,
        "checkpoint store": 300,
        "driver": 200,
    }
    assert sum(found.values()) == batch.took_ms


def test_without_an_exchange_source_and_sink_are_one_part() -> None:
    history = BatchStory().batch(10, exchange=False).history()
    (batch,) = batches_of(history)
    found = parts_of(batch, attempts_of(batch, history))
    assert found["source, operators and sink"] > 1300
    assert "source" not in found
