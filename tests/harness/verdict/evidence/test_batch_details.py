"""Micro-batches with one figure that is missing, or that Spark does not usually report."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.batch_figures import batch_figures, batches_text
from streamquake.harness.verdict.evidence.batch_parts import (
    attempts_of,
    batches_around,
    find_slowest_part,
    parts_of,
)
from streamquake.harness.verdict.evidence.batches import Batch, batch_of, longest_s
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event import Action
from streamquake.reports.record.job_events import TaskAttempt
from tests.harness.histories import Story
from tests.harness.verdict.batch_story import BatchStory

BEGAN_MS = 1_000_000
REPORTED: dict[str, Any] = {
    "checkpoint": 7,
    "trigger_ms": BEGAN_MS,
    "duration_ms": 1000,
    "began_ms": BEGAN_MS,
    "input_rows": 9,
    "state_rows": 8,
    "durations_ms": {"triggerExecution": 1000},
    "offsets": [],
    "state_operators": [],
}


def batch(**changed: Any) -> Batch:
    story = Story().at(10, Action.CHECKPOINT_COMPLETED, **{**REPORTED, **changed})
    created = batch_of(story.history().of(CheckpointCompleted)[0], driver=0)
    assert created is not None
    return created


def took(**durations_ms: int) -> Batch:
    return batch(durations_ms={"triggerExecution": 1000, **durations_ms})


def attempt(stage: int, start_ms: int, end_ms: int, number: int = 7) -> TaskAttempt:
    recorded = {"batch": number, "stage": stage, "start_ms": BEGAN_MS + start_ms}
    story = Story().at(9, Action.TASK_ATTEMPT, **recorded, end_ms=BEGAN_MS + end_ms)
    return story.history().of(TaskAttempt)[0]


@pytest.mark.parametrize(
    ("sources", "waiting"),
    [
        ([{"latest": {"in": {"0": 30, "1": 5}}, "start": {"in": {"0": 10, "1": 6}}}], 20),
        ([{"latest": None, "end": {"in": {"0": 30}}, "start": {"in": {"0": 10}}}], 20),
        ([{"latest": {"in": {"0": 30}}, "start": None}], 30),
        ([{"latest": {"in": {"0": 30, "1": 4}}, "start": {"in": {"0": 10}}}], 24),
        ([{"latest": {"in": {"0": 30}, "more": {"0": 3}}, "start": {"in": {"0": 10}}}], 23),
        ([{"latest": 17, "start": 3}], 9),
        ([{"latest": {"in": 17}, "start": None}], 9),
        ([{"latest": {"in": {"0": 3}}}, {"latest": 5}], 3),
        ([], 9),
    ],
)
def test_waiting_records_are_counted_by_topic_offsets_or_by_the_rows_read(
    sources: list[dict[str, Any]], waiting: int
) -> None:
    assert batch(offsets=sources).waiting == waiting


def test_a_store_reports_changelogs_and_files_or_neither() -> None:
    custom = {"rocksdbChangeLogWriterCommitLatencyMs": 30, "rocksdbFilesCopied": 2}
    other = {"rocksdbFilesCopied": 3}
    recorded = batch(
        state_operators=[{"commit_ms": 50, "custom": custom}, {"commit_ms": 20, "custom": other}]
    )
    assert (recorded.state_commit_ms, recorded.changelog_commit_ms, recorded.files_copied) == (
        70,
        30,
        5,
    )
    figures = batch_figures([recorded, batch()])
    assert (figures["changelog_commit_ms"], figures["state_files_copied"]) == (30, 5)
    silent = batch_figures([batch()])
    assert (silent["changelog_commit_ms"], silent["state_files_copied"]) == (None, None)


def test_an_unmeasured_part_counts_as_zero() -> None:
    figures = batch_figures([batch(), took(addBatch=800)])
    assert (figures["add_batch_ms"], figures["wal_commit_ms"]) == (400, 0)
    assert batches_text([took(addBatch=800), batch(), batch()]).endswith("(median 0 ms)")
    assert "addBatch dominates (median 800 ms)" in batches_text([took(addBatch=800)])


STORE, DRIVER, ONE = "checkpoint store", "driver", "source, operators and sink"


@pytest.mark.parametrize(
    ("batch_of_parts", "attempts", "parts"),
    [
        (batch(), [], {ONE: 0, STORE: 0, DRIVER: 1000}),
        (took(latestOffset=30, getBatch=20), [], {ONE: 50, STORE: 0, DRIVER: 950}),
        (took(walCommit=30), [], {ONE: 0, STORE: 30, DRIVER: 970}),
        (took(commitOffsets=20), [], {ONE: 0, STORE: 20, DRIVER: 980}),
        (
            took(latestOffset=30, getBatch=20),
            [attempt(0, 100, 300), attempt(1, 300, 900)],
            {"source": 250, "operators and sink": 600, STORE: 0, DRIVER: 150},
        ),
        (
            batch(state_operators=[{"commit_ms": 900, "custom": {}}]),
            [attempt(0, 100, 400)],
            {ONE: 0, STORE: 300, DRIVER: 700},
        ),
        (
            batch(state_operators=[{"commit_ms": 100, "custom": {}}]),
            [attempt(0, 100, 400)],
            {ONE: 200, STORE: 100, DRIVER: 700},
        ),
        (
            batch(state_operators=[{"commit_ms": 100, "custom": {}}]),
            [attempt(0, 100, 100)],
            {ONE: 0, STORE: 0, DRIVER: 1000},
        ),
        (took(walCommit=900), [attempt(0, 100, 400)], {ONE: 300, STORE: 900, DRIVER: 0}),
    ],
)
def test_the_parts_of_a_batch_follow_from_its_durations_and_tasks(
    batch_of_parts: Batch, attempts: list[TaskAttempt], parts: dict[str, float]
) -> None:
    assert parts_of(batch_of_parts, attempts) == pytest.approx(parts)


def test_the_attempts_of_a_batch_began_while_it_ran() -> None:
    recorded = Story()
    for number, start_ms in ((7, -1), (7, 0), (7, 1000), (7, 1001), (6, 500)):
        recorded.at(9, Action.TASK_ATTEMPT, batch=number, stage=0, start_ms=BEGAN_MS + start_ms)
    found = attempts_of(batch(), recorded.history())
    assert [event.start_ms - BEGAN_MS for event in found] == [0, 1000]


def test_a_batch_with_half_of_its_time_in_an_interval_belongs_to_it() -> None:
    """The batches end at 2.8 s, 4.6 s and 6.4 s; the first one does not count."""
    batches = [
        created
        for event in BatchStory().batches(10, 10, 10).history().of(CheckpointCompleted)
        if (created := batch_of(event, driver=0)) is not None
    ]
    ended = [each.ended_s for each in batches]
    half_s = batches[1].took_ms / 2000
    assert [b.number for b in batches_around(batches, ended[1] - half_s - 0.001, 99).during] == [
        1,
        2,
    ]
    assert [b.number for b in batches_around(batches, ended[1] - half_s + 0.001, 99).during] == [2]
    around = batches_around(batches, ended[1], 99)
    assert ([b.number for b in around.usual], [b.number for b in around.during]) == ([1], [2])


def test_a_part_missing_in_some_batches_counts_as_zero_there() -> None:
    found = find_slowest_part([{"a": 10, "b": 10}], [{"a": 10, "b": 10, "c": 1}])
    assert found is not None
    assert (found.part, found.growth_ms, found.share) == ("c", 1, 1.0)
    assert found.growth == {"a": 0, "b": 0, "c": 1}
    assert find_slowest_part([{"a": 10}], [{"a": 10}]) is None
    assert find_slowest_part([{"a": 10}], [{"a": 9}]) is None


def test_the_longest_batch_so_far() -> None:
    recorded = Story().at(1, Action.CHECKPOINT_COMPLETED, checkpoint=0)
    assert longest_s(Story().history()) == longest_s(recorded.history()) == 0
    for number, whole_ms in ((1, 500), (2, 2500), (3, 1000)):
        durations = {"triggerExecution": whole_ms, "addBatch": 9000}
        recorded.at(2, Action.CHECKPOINT_COMPLETED, checkpoint=number, durations_ms=durations)
    recorded.at(3, Action.CHECKPOINT_COMPLETED, checkpoint=4, durations_ms={})
    recorded.at(3, Action.CHECKPOINT_FAILED, checkpoint=5, durations_ms={"triggerExecution": 9000})
    assert longest_s(recorded.history()) == 2.5
