"""Batches that read other topics than the jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.batch_topics import read_other_topics
from streamquake.reports.record.outcome import Outcome
from tests.harness.verdict.batch_story import BatchStory


def source(end: Any, name: str = "KafkaV2[Subscribe[in]]") -> dict[str, Any]:
    return {"source": name, "start": None, "end": end, "latest": end}


OF_IN, OF_OTHER = source({"in": {"0": 5}}), source({"other": {"0": 5}})


@pytest.mark.parametrize(
    ("sources", "is_other"),
    [
        ([OF_IN], False),
        ([OF_OTHER], True),
        ([OF_OTHER, source(None)], True),
        ([OF_IN, OF_OTHER], False),  # a topic that is there already
        ([OF_OTHER, source(5, "RateStreamV2[]")], False),
        ([source(None)], False),
        ([], False),
    ],
)
def test_batches_read_a_topic_of_the_jobs(sources: list[dict[str, Any]], is_other: bool) -> None:
    message = read_other_topics(BatchStory().batch(5, offsets=sources).history(), {"in", "too"})
    text = "the query is recorded to read other, which is no topic that the jobs read"
    assert message == (text if is_other else None)


def test_another_topic_decides_nothing(tmp_path: Path) -> None:
    story = BatchStory().batch(5, offsets=[source({"other": {"0": 5}})])
    result = Execution().check(story.judged(tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    reasons = [each.detail["reason"] for each in result.findings]
    assert any(reason.startswith("the query is recorded to read other") for reason in reasons)
