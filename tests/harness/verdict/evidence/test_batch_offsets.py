"""Offsets of micro-batches that contradict each other, their rows, or the load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.batch_offsets import drained_before_end
from streamquake.harness.verdict.evidence.batch_reports import contradicted_reports
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event import Action
from streamquake.reports.record.job_events import JobRestored
from streamquake.reports.record.outcome import Outcome
from tests.harness.verdict.batch_story import BatchStory

KAFKA = "KafkaV2[Subscribe[in]]"
AT_FIVE = {"in": {"0": 5}}


def read(start: Any, end: Any, name: str = KAFKA) -> dict[str, Any]:
    return {"source": name, "start": start, "end": end, "latest": end}


def of_topic(*parts: int) -> dict[str, dict[str, int]]:
    return {"in": {str(number): offset for number, offset in enumerate(parts)}}


def found(story: BatchStory) -> list[str]:
    return list(contradicted_reports(story.history()))


@pytest.mark.parametrize(
    ("rows", "source", "problem"),
    [
        (5, read(None, of_topic(5)), ""),
        (5, read(of_topic(0), of_topic(5)), ""),
        (2, read(of_topic(0), of_topic(9)), ""),  # markers of transactions, or rows not used
        (9, read(of_topic(0), of_topic(5)), ""),  # tasks that were repeated read them again
        (0, read(of_topic(5), of_topic(5)), ""),  # a batch for the state alone
        (0, read(None, of_topic(0)), ""),
        (0, read(None, None), ""),  # no data yet
        (5, read(of_topic(5), of_topic(5, 5)), ""),  # a new partition
        (-1, read(of_topic(0), of_topic(5)), "is reported to have read -1 rows"),
        (5, read(of_topic(5), of_topic(5)), "is reported to have read 5 rows, and no offsets"),
        (5, read(of_topic(5), of_topic(4)), "is reported to have read in-0 from 5 to 4"),
        (5, read(of_topic(0, 7), of_topic(5)), "is reported to have read in-1 from 7 to nothing"),
        (5, read(None, None), "is reported to have read 5 rows, and no offsets"),
        (5, read(of_topic(0), None), "is reported to have read 5 rows, and no offsets"),
        (5, read(None, "5"), "is reported with the end of '5', which is no offset of a topic"),
        *(
            (
                5,
                read(None, {"in": {"0": wrong}}),
                f"is reported with the end of in-0 of {wrong!r}, which is no offset of a topic",
            )
            for wrong in (-1, 9.5, "9", None, 10**30)
        ),
        (5, read("a", "b", "mine"), ""),
        (5, read({"at": {"a": 5}}, {"at": {"a": 4}}, "mine"), ""),  # not known to grow
        (5, read(7, 9, "RateStreamV2[rowsPerSecond=1]"), ""),
        (5, read(7, 7, "RateStreamV2[rowsPerSecond=1]"), ""),
    ],
)
def test_the_offsets_and_rows_of_a_batch_fit_each_other(
    rows: int, source: dict[str, Any], problem: str
) -> None:
    story = BatchStory().batch(rows, offsets=[source])
    assert found(story) == ([f"batch 0 {problem}"] if problem else [])


def test_a_batch_that_is_reported_has_a_source() -> None:
    assert found(BatchStory().batch(0, offsets=[])) == ["batch 0 is reported without a source"]
    not_reported = BatchStory().batch(0)
    for name in ("offsets", "durations_ms", "input_rows"):
        del not_reported.history()[-1].value[name]  # type: ignore[attr-defined]
    assert found(not_reported) == []


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        (read(AT_FIVE, AT_FIVE), ""),
        ({"source": KAFKA, "end": AT_FIVE}, ""),  # not recorded
        ({"source": KAFKA, "start": AT_FIVE}, ""),
        (read(None, AT_FIVE), "batch 0 read KAFKA to FIVE, and batch 1 from None"),
        (read(AT_FIVE, None), "batch 1 read KAFKA from FIVE to no offset"),
        (
            read(AT_FIVE, AT_FIVE, "KafkaV2[Subscribe[other]]"),
            "batch 0 read KAFKA, of which batch 1 reports nothing",
        ),
    ],
)
def test_a_batch_goes_on_with_each_source(after: dict[str, Any], problem: str) -> None:
    story = BatchStory().batch(5, offsets=[read(None, AT_FIVE)]).batch(0, offsets=[after])
    named = problem.replace("KAFKA", KAFKA).replace("FIVE", str(AT_FIVE))
    assert found(story) == ([named] if problem else [])


def test_a_batch_reads_no_further_than_the_newest_offset() -> None:
    beyond = {**read(of_topic(0, 0), of_topic(5, 5)), "latest": of_topic(9, 4)}
    story = BatchStory().batch(10, offsets=[beyond])
    # In real-time mode the newest offset is that of the begin, and the offsets are logged at the
    # end.
    assert found(story) == []
    (batch,) = story.history().of(CheckpointCompleted)
    stamp_ms = batch.trigger_ms
    story.at(3.0, Action.OFFSET_WRITTEN, job="query", checkpoint=0, step_ms=stamp_ms)
    assert found(story) == [
        "batch 0 is reported to have read in-1 to 5, and its newest offset as 4"
    ]
    beyond["latest"] = of_topic(9)  # not known of all partitions
    assert found(story) == []
    beyond["latest"] = None  # it repeats a batch
    assert found(story) == []


def test_a_driver_has_each_source_as_often() -> None:
    once, twice = [read(None, AT_FIVE)], [read(AT_FIVE, AT_FIVE)] * 2
    (message,) = found(BatchStory().batch(5, offsets=once).batch(0, offsets=twice))
    assert message == f"batch 0 is reported with 1 sources {KAFKA}, and batch 1 with 2"


def unreported(story: BatchStory) -> BatchStory:
    """The batch that fails is committed by the next driver, which ends before it reports it."""
    story.fails(own=False).batch(0)
    for name in ("offsets", "durations_ms", "input_rows"):
        del story.history()[-1].value[name]  # type: ignore[attr-defined]
    return story


@pytest.mark.parametrize(
    ("end", "start", "is_wrong"),
    [
        (of_topic(5, 5), of_topic(5, 5), False),
        (of_topic(5, 5), of_topic(9, 5), False),  # what the batch between them has read
        (of_topic(5, 5), of_topic(9, 5, 3), False),
        (of_topic(5, 5), of_topic(9, 4), True),
        (of_topic(5, 5), of_topic(9), True),
        (of_topic(5, 5), None, True),
        (None, of_topic(9), False),
    ],
)
def test_a_batch_behind_an_unreported_one_starts_no_earlier(
    end: Any, start: Any, is_wrong: bool
) -> None:
    story = unreported(BatchStory().batch(0, offsets=[read(None, end)]))
    message = f"batch 0 read {KAFKA} to {end}, and batch 2 from {start}"
    story.batch(0, offsets=[read(start, of_topic(9, 9, 9))])
    assert found(story) == ([message] if is_wrong else [])


def test_a_driver_reads_anew_what_follows_the_batch_that_it_restored() -> None:
    """With progress tracked beside the batches, more than one batch is read again, and under other
    limits."""
    story = BatchStory()
    for offset in range(4):
        story.batch(1, offsets=[read(of_topic(offset), of_topic(offset + 1))])
    story.fails(own=False)
    story.history().of(JobRestored)[-1].value["checkpoint"] = 1  # type: ignore[index]
    again = [read(of_topic(2), of_topic(9))]
    assert found(story.batch(7, checkpoint=3, offsets=again)) == []
    assert found(story.batch(0, checkpoint=4, offsets=[read(of_topic(9), of_topic(9))])) == []
    story.history().of(JobRestored)[-1].value["checkpoint"] = 2  # type: ignore[index]
    assert found(story) == [
        f"batch 2 read {KAFKA} to {of_topic(3)}, and batch 3 from {of_topic(2)}"
    ]


def test_another_driver_may_name_its_sources_anew() -> None:
    story = BatchStory().batch(5, offsets=[read(None, 5, "Mine@1f")]).fails(own=False)
    assert found(story.batch(5, offsets=[read(5, 9, "Mine@2e")])) == []


def test_a_topic_that_is_read_twice_is_compared_with_itself() -> None:
    """Each reader asks for the newest offsets by itself."""
    twice = [read(None, of_topic(5)), read(None, of_topic(7))]
    story = BatchStory().batch(5, offsets=twice)
    assert found(story.batch(4, offsets=[read(of_topic(5), of_topic(8))] * 2)) == [
        f"batch 0 read {KAFKA} to {{'in': {{'0': 7}}}}, and batch 1 from {{'in': {{'0': 5}}}}"
    ]
    story = BatchStory().batch(5, offsets=twice)
    goes_on = [read(of_topic(5), of_topic(8)), read(of_topic(7), of_topic(9))]
    assert found(story.batch(4, offsets=goes_on)) == []


def sent(story: BatchStory, count: int, *, drained: bool = True) -> BatchStory:
    load = {"first": 0, "last": count - 1, "status": "acknowledged", "count": count}
    story.at(story.now_ms / 1000, Action.SENT, **load)
    if drained:
        story.at(story.now_ms / 1000, Action.DRAINED)
    return story


@pytest.mark.parametrize(
    ("count", "topics", "drained", "is_short"),
    [
        (9, ("in",), True, False),
        (10, ("in",), True, True),
        (10, ("in",), False, False),
        (10, ("in", "in-too"), True, False),  # not all of the load is read
    ],
)
def test_a_drained_query_has_read_the_load(
    count: int, topics: tuple[str, ...], drained: bool, is_short: bool
) -> None:
    story = BatchStory().batch(9, offsets=[read(None, of_topic(4, 5))])
    message = drained_before_end(sent(story, count, drained=drained).history(), topics)
    text = (
        "batch 0, the last one, ended at 9 offsets in all, and 10 records were acknowledged before "
        "the drain"
    )
    assert message == (text if is_short else None)


@pytest.mark.parametrize(
    ("latest", "message"),
    [
        (of_topic(4, 5), None),
        (of_topic(3, 5), None),  # in real-time mode a batch reads beyond those of its begin
        (None, None),
        ({"other": {"0": 9}}, None),
        (of_topic(5, 5), "read in-0 to 4, and its newest offset was 5 before the drain"),
        (of_topic(4, 5, 1), "read in-2 to 0, and its newest offset was 1 before the drain"),
    ],
)
def test_a_drained_query_has_read_each_partition(latest: Any, message: str | None) -> None:
    source = {**read(None, of_topic(4, 5)), "latest": latest}
    story = sent(BatchStory().batch(9, offsets=[source]), 9)
    found = drained_before_end(story.history(), ("in",))
    assert found == (message and f"batch 0, the last one, {message}")


@pytest.mark.parametrize("source", [read(None, 3, "RateStreamV2[]"), read(None, None)])
def test_offsets_of_no_topic_prove_nothing_about_the_load(source: dict[str, Any]) -> None:
    story = sent(BatchStory().batch(9, offsets=[source]), 10)
    assert drained_before_end(story.history(), ("in",)) is None
    assert drained_before_end(sent(BatchStory(), 10).history(), ("in",)) is None


@pytest.mark.parametrize("name", ["offsets", "input_rows", "state_rows"])
def test_a_report_without_a_field_is_named(name: str, tmp_path: Path) -> None:
    missing: dict[str, Any] = {name: None}
    story = BatchStory().batch(9, **missing)
    result = Execution().check(story.judged(tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert f"is recorded without its `{name}`" in result.summary


def test_offsets_that_end_early_decide_nothing(tmp_path: Path) -> None:
    (topic,) = BatchStory().judged(tmp_path).experiment.workload.topics()
    story = BatchStory().batch(9, offsets=[read(None, {topic: {"0": 9}})])
    result = Execution().check(sent(story, 10).judged(tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    reasons = [each.detail["reason"] for each in result.findings]
    assert any(reason.startswith("batch 0, the last one, ended at 9") for reason in reasons)
