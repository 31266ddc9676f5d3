"""Stamps of brokers whose clock is not that of the harness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamquake.harness.verdict.evidence.append_times import AppendedRecords
from streamquake.harness.verdict.evidence.stamp_contradictions import (
    clock_contradiction,
    early_stamp,
)
from streamquake.reports.record.event import Action
from streamquake.reports.record.metrics import Metrics
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


class PlacedRecords:
    """The records of two partitions, one every 100 ms from 5 s on in each; the offsets of one begin
    at 1,000. The broker of partition 1 has another clock."""

    def __init__(self, shift_ms: int) -> None:
        self.table = pa.table(
            {
                "partition": [n % 2 for n in range(200)],
                "offset": [1_000 * (n % 2) + n // 2 for n in range(200)],
                "timestamp_ms": [
                    BEGAN_MS + 5_000 + 100 * (n // 2) + shift_ms * (n % 2) for n in range(200)
                ],
            }
        )

    def select(self, *columns: str) -> PlacedRecords:
        assert columns == ("partition", "offset", "timestamp_ms")
        return self

    def where(self, condition: str) -> PlacedRecords:
        until_ms = int(condition.removeprefix("timestamp_ms < "))
        self.table = self.table.filter(pc.field("timestamp_ms") < until_ms)
        return self

    def toArrow(self) -> pa.Table:
        return self.table.take(list(range(len(self.table) - 1, -1, -1)))


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


def sampled_ends(folder: Path, *, lag_s: float = 0.0, output: str = "totals") -> Path:
    """The ends of both partitions, each second until 16 s; those of 11 s and 12 s are older."""
    path = folder / "metrics.parquet"
    metrics = Metrics(path)
    for second in range(1, 17):
        seen_s = second - (lag_s if second in (11, 12) else 0)
        records = min(100, max(0, round((seen_s - 5) * 10)))
        for partition in range(2):
            where = f"{output}/{partition}"
            metrics.add(second * 10**9, "end", where, 1_000 * partition + records)
    metrics.flush()
    return path


def early(shift_ms: int, metrics: Path, story: Story) -> str | None:
    records: Any = PlacedRecords(shift_ms)
    found = AppendedRecords(
        name="totals", topic="t", partitions=2, records=records, map={}, began_ms=BEGAN_MS
    )
    return early_stamp(found, metrics, story.history())


def test_one_broker_behind_stamps_records_before_its_partition_had_them(tmp_path: Path) -> None:
    metrics = sampled_ends(tmp_path)
    assert early(-2_000, metrics, told()) is None
    assert early(3_000, metrics, told()) is None
    assert early(-2_100, metrics, told()) == (
        "records that totals/1 did not have at 4.0 s are stamped 1.1 s earlier"
    )
    assert early(-60_000, tmp_path / "none", told()) is None, "no end was sampled"
    other = sampled_ends(tmp_path, output="others")
    assert early(-60_000, other, told()) is None


def test_an_end_that_does_not_move_during_a_fault_contradicts_nothing(tmp_path: Path) -> None:
    """Records are written, and are not in all replicas yet."""
    metrics = sampled_ends(tmp_path, lag_s=4.0)
    assert early(0, metrics, told()) is not None
    during = told().at(10.5, Action.FAULT_CALLED, step=0, fault="pause")
    during.at(10.6, Action.FAULT_IN_EFFECT, step=0, fault="pause", seen_ns=10_600_000_000)
    assert early(0, metrics, during) is None


def test_nothing_written_contradicts_nothing() -> None:
    records: Any = Records()
    records.stamps = pa.array([], pa.int64())
    found = AppendedRecords(
        name="totals", topic="t", partitions=1, records=records, map={}, began_ms=BEGAN_MS
    )
    assert clock_contradiction(found, {"ends": {}}, told().history()) is None
