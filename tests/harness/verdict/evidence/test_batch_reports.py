"""Reports of micro-batches that contradict themselves, or each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.batch_reports import contradicted_reports
from streamquake.reports.record.outcome import Outcome
from tests.harness.verdict.batch_story import EPOCH_MS, BatchStory

WHOLE_MS = 1800
"""What the batches of the story take, from their trigger 50 ms less."""


def found(story: BatchStory) -> list[str]:
    return list(contradicted_reports(story.history()))


def of_source(start: int, end: int, name: str = "k") -> dict[str, Any]:
    return {"source": name, "start": {"in": {"0": start}}, "end": {"in": {"0": end}}}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, ""),
        ({"phases_ms": {"waiting": 750, "running": 1000}}, ""),
        ({"phases_ms": {"waiting": 750, "running": 1001}}, ""),  # rounded
        (
            {"phases_ms": {"waiting": 750, "running": 1002}},
            "is recorded to have taken 1,750 ms since its trigger, and its phases 1,752 ms",
        ),
        (
            {"phases_ms": {"running": 1750}, "duration_ms": 50},
            "is recorded to have taken 50 ms since its trigger, and its phases 1,750 ms",
        ),
        ({"duration_ms": None}, ""),
        (
            {"duration_ms": 1802},
            "is recorded to have taken 1,800 ms, and its checkpoint 1,802 ms",
        ),
        ({"duration_ms": WHOLE_MS}, ""),
        ({"duration_ms": WHOLE_MS + 1, "phases_ms": {}}, ""),  # rounded
        ({"duration_ms": None, "durations_ms": {"triggerExecution": -1}, "began_ms": None}, ""),
        (
            {"durations_ms": {"triggerExecution": 90, "addBatch": 60, "walCommit": 40}},
            "is recorded to have taken 90 ms, and its parts 100 ms",
        ),
        ({"durations_ms": {"addBatch": 5000}}, ""),
        ({"began_ms": EPOCH_MS + 1000}, ""),
        ({"began_ms": EPOCH_MS + 1050}, ""),
        (
            {"began_ms": EPOCH_MS + 1060},
            "is recorded to have been triggered -10 ms after its begin",
        ),
        ({"began_ms": EPOCH_MS + 1050 - WHOLE_MS - 1}, ""),  # rounded
        (
            {"began_ms": EPOCH_MS - 900},
            "is recorded to have been triggered +1,950 ms after its begin",
        ),
    ],
)
def test_durations_of_a_batch_fit_each_other(changed: dict[str, Any], message: str) -> None:
    if "durations_ms" in changed:
        changed = {"duration_ms": None, **changed}
    expected = [f"batch 0 {message}"] if message else []
    assert found(BatchStory().batch(5, **changed)) == expected


def test_a_batch_reads_on_from_the_one_before_it() -> None:
    assert found(BatchStory().batches(5, 5, 5)) == []
    assert found(BatchStory().batches(5, 5).fails(own=True).batches(5)) == []
    (message,) = found(BatchStory().batch(5).batch(5, offsets=[of_source(3, 10)]))
    assert message == "batch 0 read k to {'in': {'0': 5}}, and batch 1 from {'in': {'0': 3}}"


def test_sources_are_compared_by_their_names() -> None:
    both = [of_source(0, 5), of_source(0, 7, "other")]
    story = BatchStory().batch(5, offsets=both)
    swapped = [of_source(7, 9, "other"), of_source(5, 9), of_source(3, 4, "new")]
    assert found(story.batch(5, offsets=swapped)) == []


def test_a_batch_without_the_one_before_it_is_not_compared() -> None:
    story = BatchStory().batches(5, 5, 5)
    kept = BatchStory()
    for event in story.history():
        if event.value.get("checkpoint") != 1:
            kept.at(event.at_s, event.action, **event.value)
    assert found(kept) == []


def test_a_contradiction_decides_nothing(tmp_path: Path) -> None:
    story = BatchStory().batch(5).batch(5, offsets=[of_source(3, 10)])
    result = Execution().check(story.judged(tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    reasons = [each.detail["reason"] for each in result.findings]
    assert "batch 0 read k to {'in': {'0': 5}}, and batch 1 from {'in': {'0': 3}}" in reasons
