"""Stamps of brokers whose clock is not that of the harness."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamquake.harness.verdict.evidence.append_times import AppendedRecords
from streamquake.harness.verdict.evidence.stamp_contradictions import clock_contradiction
from streamquake.reports.record.event import Action
from tests.harness.histories import Story

BEGAN_MS = 1_767_225_600_000


class Records:
    """The records of an output, one every 100 ms from 5 s on."""

    def __init__(self, shift_ms: int = 0) -> None:
        self.stamps = [BEGAN_MS + shift_ms + 5_000 + 100 * n for n in range(100)]

    def select(self, column: str) -> Records:
        assert column == "timestamp_ms"
        return self

    def toArrow(self) -> pa.Table:
        return pa.table({"timestamp_ms": self.stamps})


def told(*, grew: bool = True) -> Story:
    """The first record was acknowledged at 4.8 s, and the output was seen to grow each second."""
    sent = {"first": 0, "last": 99, "count": 100, "status": "acknowledged"}
    story = Story().at(4.9, Action.SENT, **sent, sent_by=[[0, 99, 4_800_000_000]])
    for second in range(6, 16) if grew else ():
        end = 10 * (second - 5) + 1000
        story.at(second, Action.OUTPUT_SEEN, output="totals", end=end, grown=10)
    return story


def contradiction(shift_ms: int, story: Story, *, markers: int = 0) -> str | None:
    records: Any = Records(shift_ms)
    found = AppendedRecords(
        name="totals", topic="t", partitions=1, records=records, map={}, began_ms=BEGAN_MS
    )
    facts = {"starts": {"0": 1000}, "ends": {"0": 1100 + markers}}
    return clock_contradiction(found, facts, story.history())


@pytest.mark.parametrize("shift_ms", [-2_100, -500, 0, 500, 1_000])
def test_small_differences_are_no_contradiction(shift_ms: int) -> None:
    assert contradiction(shift_ms, told()) is None


def test_a_broker_behind_stamps_records_before_they_were_sent() -> None:
    assert contradiction(-2_300, told()) == (
        "the first record is stamped 2.1 s before anything was sent"
    )
    unknown = Story().at(9, Action.OUTPUT_SEEN, output="totals", end=1100, grown=100)
    assert contradiction(-20_000, unknown) is None, "when anything was sent is not known"


def test_a_broker_ahead_stamps_records_after_they_were_read() -> None:
    assert contradiction(1_300, told()) == (
        "records that could be read at 6.0 s are stamped later (2)"
    )
    assert contradiction(60_000, told(grew=False)) is None
    other = Story().at(9, Action.OUTPUT_SEEN, output="others", end=1100, grown=100)
    assert contradiction(60_000, other) is None


def test_offsets_without_a_record_need_no_stamp() -> None:
    assert contradiction(1_300, told(), markers=2) is None
    assert contradiction(1_400, told(), markers=2) is not None


def test_nothing_written_contradicts_nothing() -> None:
    records: Any = Records()
    records.stamps = pa.array([], pa.int64())
    found = AppendedRecords(
        name="totals", topic="t", partitions=1, records=records, map={}, began_ms=BEGAN_MS
    )
    assert clock_contradiction(found, {"ends": {}}, told().history()) is None
