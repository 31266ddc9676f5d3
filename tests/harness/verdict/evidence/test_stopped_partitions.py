"""Partitions that stopped for good: by their stamps alone, and by the keys that were sent on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from streamquake.harness.verdict.evidence.append_times import appended
from streamquake.harness.verdict.evidence.stopped_partitions import (
    StoppedPartition,
    _silent,
    stopped,
)
from streamquake.reports.record.event import Action
from tests.harness.histories import Story
from tests.harness.verdict.checks.stamped import BEGAN_MS, Out, changed, judged_case, number

INJECTED_MS = 1_000


def silent(
    *lanes: tuple[int, list[int]], end_ms: int, limit_ms: float = 500
) -> list[StoppedPartition]:
    """The partitions that went silent, of stamps in any order."""
    stamps = [(stamp, partition) for partition, own in lanes for stamp in own]
    columns = np.array(stamps[::-1], dtype=np.int64).T
    return list(_silent(columns[0], columns[1], INJECTED_MS, end_ms, limit_ms))


def every_100_ms(count: int) -> list[int]:
    """Stamps of which the last is before the fault."""
    return [100 * n + 100 for n in range(count)]


def test_a_silence_is_told_with_the_usual_gap_beside_it() -> None:
    quick, slow = every_100_ms(8), [0, 10, 20, 30, 40, 640]
    found = silent((3, quick), (7, slow), end_ms=2_441)
    assert found == [
        StoppedPartition(partition=3, last_ms=800, silent_ms=1641, usual_gap_ms=100),
        StoppedPartition(partition=7, last_ms=640, silent_ms=1801, usual_gap_ms=600),
    ]
    # No longer than three of its usual gaps: it may be one more of them.
    assert [lane.partition for lane in silent((3, quick), (7, slow), end_ms=2_440)] == [3]


@pytest.mark.parametrize(("end_ms", "count"), [(1_300, 0), (1_301, 1)])
def test_a_silence_no_longer_than_the_limit_is_none(end_ms: int, count: int) -> None:
    assert len(silent((0, every_100_ms(8)), end_ms=end_ms)) == count


@pytest.mark.parametrize(("records", "count"), [(5, 0), (6, 1)])
def test_a_partition_with_few_gaps_says_nothing(records: int, count: int) -> None:
    assert len(silent((0, every_100_ms(records)), end_ms=9_000)) == count


def test_gaps_count_until_the_fault_alone() -> None:
    before = every_100_ms(5)
    # The gap before a record of the moment of the fault is one of the fault.
    assert silent((0, [*before, INJECTED_MS]), end_ms=9_000) == []
    (lane,) = silent((0, [*before, 600, INJECTED_MS, 3_000]), end_ms=4_000)
    assert (lane.usual_gap_ms, lane.last_ms, lane.silent_ms) == (100, 3_000, 1_000)


LAST_S, LOAD_END_S, LIMIT_MS = 12.0, 20.0, 3_000.0
"""Partition 1 has its last record then; what was sent until 17 s should have come by the end."""


def gone(out: Out) -> list[Out]:
    """Partition 1 has its last record at exactly 12 s, of key 5; then it is silent."""
    if out.partition != 1 or out.at_s < 11.9:
        return [out]
    return [out._replace(at_s=LAST_S)] if out.record.index == LAST_INDEX else []


LAST_INDEX = 1190
"""A record of key 5 that came shortly before."""


def noted(*notes: tuple[float, int, int]) -> Story:
    """What the load noted, each as (when, first index, last index); all was drained."""
    recorded = Story().at(0.5, Action.SENT, first=0, last=9, count=10, status="acknowledged")
    for at_s, first, last in notes:
        recorded.at(
            at_s, Action.SENT, first=first, last=last, count=last - first + 1, status="acknowledged"
        )
    return recorded.at(25.0, Action.DRAINED)


def keys_of(
    spark: SparkSession, folder: Path, reported: Story, cut_s: float | None = None
) -> list[int]:
    """Of each partition that stopped, how many of its keys were sent on and came nowhere; another
    fault was called at `cut_s`."""
    case = judged_case(spark, folder, changed(gone), reported)
    output = appended(case)
    rows = output.records.select("timestamp_ms", "partition").collect()
    stamps = np.array([row.timestamp_ms for row in rows], dtype=np.int64)
    partitions = np.array([row.partition for row in rows], dtype=np.int64)
    cut_ms = None if cut_s is None else BEGAN_MS + round(cut_s * 1000)
    found = stopped(case, output, (stamps, partitions), BEGAN_MS + 10_000, LIMIT_MS, cut_ms)
    assert all(lane.partition == 1 for lane in found)
    return [lane.keys for lane in found]


SENT_IN_TURN = {4: 1200, 6: 1201, 7: 1202, 2: 1203, 0: 1204, 3: 1205, 5: 1206, 1: 1207}
"""Key -> the index of one of its records. Each turn of eight has all keys, in this order."""
TWO, FIVE, ONE = (SENT_IN_TURN[key] for key in (2, 5, 1))
NEXT_TWO = TWO + 8
DONE = (LOAD_END_S, 1990, 1999)


def test_the_keys_are_sent_and_come_from_where_the_test_says() -> None:
    sent = {
        number(out.record): out.record.index
        for out in changed(lambda out: [out])
        if 1200 <= out.record.index < 1208
    }
    assert sent == SENT_IN_TURN
    last = next(out for out in changed(gone) if out.record.index == LAST_INDEX)
    assert (number(last.record), last.partition, last.at_s) == (5, 1, LAST_S)


@pytest.mark.parametrize(
    ("notes", "keys"),
    [
        # Key 1 and 5 are those of partition 1; the others are of other ones.
        ([(13, 1200, 1201), (14, TWO, TWO), (14.5, FIVE, FIVE), (15, ONE, ONE), DONE], [2]),
        (
            [(13, 1200, 1201), (14, FIVE, FIVE), (14.5, ONE, ONE), (15, NEXT_TWO, NEXT_TWO), DONE],
            [2],
        ),
        ([(13, 1200, 1201), (14, ONE, ONE), (14.5, NEXT_TWO, NEXT_TWO), DONE], [1]),
        ([(13, 1200, 1201), (14, TWO, TWO), DONE], []),
    ],
)
def test_keys_that_were_sent_on_and_came_nowhere_are_counted(
    spark: SparkSession, tmp_path: Path, notes: list[tuple[float, int, int]], keys: list[int]
) -> None:
    assert keys_of(spark, tmp_path, noted(*notes)) == keys


@pytest.mark.parametrize(
    ("since_s", "at_s", "keys"),
    [
        (12.001, 17.0, [1]),
        # Sent in part while records still came, or too late to have come by the end of the load.
        (12.0, 17.0, []),
        (12.001, 17.001, []),
        (11.0, 14.0, []),
        (13.0, 19.0, []),
    ],
)
def test_only_what_was_sent_in_time_counts(
    spark: SparkSession, tmp_path: Path, since_s: float, at_s: float, keys: list[int]
) -> None:
    recorded = noted((since_s, 100, 101), (at_s, ONE, ONE), DONE)
    assert keys_of(spark, tmp_path, recorded) == keys


def test_nothing_is_told_without_notes_or_where_something_may_still_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    notes = ((13.0, 100, 101), (14.0, ONE, ONE), DONE)
    assert keys_of(spark, tmp_path / "told", noted(*notes)) == [1]
    pending = noted(*notes)
    pending._events = pending._events[:-1]
    assert keys_of(spark, tmp_path / "pending", pending) == []
    assert keys_of(spark, tmp_path / "silent", Story().at(25.0, Action.DRAINED)) == []


@pytest.mark.parametrize(
    ("cut_s", "keys"), [(11.0, []), (14.9, []), (16.9, []), (17.0, [1]), (40.0, [1])]
)
def test_a_silence_counts_until_another_fault_at_the_longest(
    spark: SparkSession, tmp_path: Path, cut_s: float, keys: list[int]
) -> None:
    recorded = noted((13.0, 100, 101), (14.0, ONE, ONE), DONE)
    assert keys_of(spark, tmp_path, recorded, cut_s) == keys


def test_a_key_that_came_elsewhere_is_not_gone(spark: SparkSession, tmp_path: Path) -> None:
    """As after a rescaling."""
    moved = [
        out._replace(partition=2) if out.partition == 1 and out.at_s > LAST_S else out
        for out in changed(lambda out: [out])
    ]
    case = judged_case(spark, tmp_path, moved, noted((13, 100, 101), (14, ONE, ONE), DONE))
    output = appended(case)
    rows = output.records.select("timestamp_ms", "partition").collect()
    lanes = (np.array([r.timestamp_ms for r in rows]), np.array([r.partition for r in rows]))
    assert stopped(case, output, lanes, BEGAN_MS + 10_000, LIMIT_MS) == ()
