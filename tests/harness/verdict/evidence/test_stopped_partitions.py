"""Partitions that stopped for good: by their stamps alone, and by the keys that were still sent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from streamquake.harness.verdict.evidence.append_times import append_times_of
from streamquake.harness.verdict.evidence.message_keys import NOT_SENT, OTHER_COLUMN
from streamquake.harness.verdict.evidence.stopped_partitions import (
    OTHER_KEYS,
    SILENT_BEFORE,
    UNKNOWN_KEYS,
    StoppedPartition,
    _silent_partitions,
    stopped_partitions,
)
from streamquake.harness.workloads.numbered import Numbered
from streamquake.reports.record.event import Action
from tests.harness.histories import Story
from tests.harness.verdict.checks.stamped import (
    BEGAN_MS,
    OutputRecord,
    bucket_key,
    changed,
    judged_case,
    number,
)

INJECTED_MS = 1_000


def silent(
    *lanes: tuple[int, list[int]], end_ms: int, limit_ms: float = 500
) -> list[StoppedPartition]:
    """The silent partitions, of stamps in any order."""
    stamps = [(stamp, partition) for partition, own in lanes for stamp in own]
    columns = np.array(stamps[::-1], dtype=np.int64).T
    return list(_silent_partitions(columns[0], columns[1], INJECTED_MS, end_ms, limit_ms))


def every_100_ms(count: int) -> list[int]:
    """Stamps that end before the fault."""
    return [100 * n + 100 for n in range(count)]


def test_a_silence_is_reported_with_the_usual_gap() -> None:
    quick, slow = every_100_ms(8), [0, 10, 20, 30, 40, 640]
    found = silent((3, quick), (7, slow), end_ms=2_441)
    assert found == [
        StoppedPartition(partition=3, last_ms=800, silent_ms=1641, usual_gap_ms=100),
        StoppedPartition(partition=7, last_ms=640, silent_ms=1801, usual_gap_ms=600),
    ]
    # No longer than three of its usual gaps: it may be a usual gap.
    assert [lane.partition for lane in silent((3, quick), (7, slow), end_ms=2_440)] == [3]


@pytest.mark.parametrize(("end_ms", "count"), [(1_300, 0), (1_301, 1)])
def test_a_silence_within_the_limit_does_not_count(end_ms: int, count: int) -> None:
    assert len(silent((0, every_100_ms(8)), end_ms=end_ms)) == count


@pytest.mark.parametrize(("records", "count"), [(5, 0), (6, 1)])
def test_a_partition_with_few_gaps_does_not_count(records: int, count: int) -> None:
    assert len(silent((0, every_100_ms(records)), end_ms=9_000)) == count


def test_only_gaps_before_the_fault_are_usual() -> None:
    before = every_100_ms(5)
    # The gap before a record at the moment of the fault belongs to the fault.
    assert silent((0, [*before, INJECTED_MS]), end_ms=9_000) == []
    (lane,) = silent((0, [*before, 600, INJECTED_MS, 3_000]), end_ms=4_000)
    assert (lane.usual_gap_ms, lane.last_ms, lane.silent_ms) == (100, 3_000, 1_000)


LAST_S, LOAD_END_S, LIMIT_MS = 12.0, 20.0, 3_000.0
"""The last record of partition 1 is at 12 s; records sent until 17 s should be written by the
end."""


def without_later_records(out: OutputRecord) -> list[OutputRecord]:
    """The last record of partition 1 is at exactly 12 s, of key 5; then it is silent."""
    if out.partition != 1 or out.at_s < 11.9:
        return [out]
    return [out._replace(at_s=LAST_S)] if out.record.index == LAST_INDEX else []


LAST_INDEX = 1190
"""An earlier record of key 5, shortly before."""


def with_sends(*notes: tuple[float, int, int]) -> Story:
    """The events of the load, each as (moment, first index, last index), and the drain."""
    recorded = Story().at(0.5, Action.SENT, first=0, last=9, count=10, status="acknowledged")
    for at_s, first, last in notes:
        recorded.at(
            at_s, Action.SENT, first=first, last=last, count=last - first + 1, status="acknowledged"
        )
    return recorded.at(25.0, Action.DRAINED)


def stopped(
    spark: SparkSession, folder: Path, reported: Story, cut_s: float | None = None
) -> tuple[StoppedPartition, ...]:
    """The stopped partitions; another fault was called at `cut_s`."""
    case = judged_case(spark, folder, changed(without_later_records), reported)
    output = append_times_of(case)
    rows = output.records.select("timestamp_ms", "partition").collect()
    stamps = np.array([row.timestamp_ms for row in rows], dtype=np.int64)
    partitions = np.array([row.partition for row in rows], dtype=np.int64)
    cut_ms = None if cut_s is None else BEGAN_MS + round(cut_s * 1000)
    found = stopped_partitions(
        case, output, (stamps, partitions), BEGAN_MS + 10_000, LIMIT_MS, cut_ms
    )
    assert all(lane.partition == 1 for lane in found)
    return found


def keys_of(
    spark: SparkSession, folder: Path, reported: Story, cut_s: float | None = None
) -> list[int]:
    """Each stopped partition -> how many of its keys were still sent and are in no partition."""
    return [lane.keys for lane in stopped(spark, folder, reported, cut_s)]


SENT_IN_TURN = {4: 1200, 6: 1201, 7: 1202, 2: 1203, 0: 1204, 3: 1205, 5: 1206, 1: 1207}
"""Key -> the index of one of its records. Each group of eight records has all keys, in this
order."""
TWO, FIVE, ONE = (SENT_IN_TURN[key] for key in (2, 5, 1))
NEXT_TWO = TWO + 8
DONE = (LOAD_END_S, 1990, 1999)


def test_the_test_data_has_the_expected_keys() -> None:
    sent = {
        number(out.record): out.record.index
        for out in changed(lambda out: [out])
        if 1200 <= out.record.index < 1208
    }
    assert sent == SENT_IN_TURN
    last = next(out for out in changed(without_later_records) if out.record.index == LAST_INDEX)
    assert (number(last.record), last.partition, last.at_s) == (5, 1, LAST_S)


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize(
    ("notes", "keys"),
    [
        # Keys 1 and 5 belong to partition 1; the others to other partitions.
        ([(13, 1200, 1201), (14, TWO, TWO), (14.5, FIVE, FIVE), (15, ONE, ONE), DONE], [2]),
        (
            [(13, 1200, 1201), (14, FIVE, FIVE), (14.5, ONE, ONE), (15, NEXT_TWO, NEXT_TWO), DONE],
            [2],
        ),
        ([(13, 1200, 1201), (14, ONE, ONE), (14.5, NEXT_TWO, NEXT_TWO), DONE], [1]),
        ([(13, 1200, 1201), (14, TWO, TWO), DONE], []),
    ],
)
def test_keys_still_sent_without_any_record_are_counted(
    spark: SparkSession, tmp_path: Path, notes: list[tuple[float, int, int]], keys: list[int]
) -> None:
    assert keys_of(spark, tmp_path, with_sends(*notes)) == keys


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("since_s", "at_s", "keys"),
    [
        (12.001, 17.0, [1]),
        # Sent partly while records were still written, or too late to be written by the end of the
        # load.
        (12.0, 17.0, []),
        (12.001, 17.001, []),
        (11.0, 14.0, []),
        (13.0, 19.0, []),
    ],
)
def test_only_records_sent_in_time_count(
    spark: SparkSession, tmp_path: Path, since_s: float, at_s: float, keys: list[int]
) -> None:
    recorded = with_sends((since_s, 100, 101), (at_s, ONE, ONE), DONE)
    assert keys_of(spark, tmp_path, recorded) == keys


def test_before_the_drain_it_is_unclear_whether_a_partition_stopped(
    spark: SparkSession, tmp_path: Path
) -> None:
    notes = ((13.0, 100, 101), (14.0, ONE, ONE), DONE)
    (lane,) = stopped(spark, tmp_path / "told", with_sends(*notes))
    assert (lane.keys, lane.unclear) == (1, "")
    pending = with_sends(*notes)
    pending._events = pending._events[:-1]
    (lane,) = stopped(spark, tmp_path / "pending", pending)
    assert (lane.keys, lane.unclear) == (
        1,
        "its records may not be committed yet: the run ended before it was drained",
    )
    assert stopped(spark, tmp_path / "silent", Story().at(25.0, Action.DRAINED)) == ()


def test_without_known_keys_it_is_unclear_whether_a_partition_stopped(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Numbered, "generated", False)
    notes = ((13.0, 100, 101), (14.0, ONE, ONE), DONE)
    (lane,) = stopped(spark, tmp_path, with_sends(*notes))
    assert lane.unclear == UNKNOWN_KEYS
    assert stopped(spark, tmp_path / "none", with_sends((11.0, ONE, ONE), DONE)) == ()


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize(
    ("form", "doubt"),
    [(None, OTHER_COLUMN), ('{{"key":"{}"}}', NOT_SENT)],
    ids=["no key", "JSON"],
)
def test_with_keys_that_were_not_sent_it_is_unclear_whether_a_partition_stopped(
    spark: SparkSession, tmp_path: Path, form: str | None, doubt: str
) -> None:
    """An output may have no key, or one in another format than the load."""

    def in_form(out: OutputRecord) -> Iterable[OutputRecord]:
        for part in without_later_records(out):
            key: Any = None if form is None else form.format(part.record.key)
            yield part._replace(record=part.record._replace(key=key))

    written = changed(in_form)
    recorded = with_sends((13, 100, 101), (14, ONE, ONE), DONE)
    case = judged_case(spark, tmp_path, written, recorded)
    output = append_times_of(case)
    rows = output.records.select("timestamp_ms", "partition").collect()
    lanes = (np.array([r.timestamp_ms for r in rows]), np.array([r.partition for r in rows]))
    (lane,) = stopped_partitions(case, output, lanes, BEGAN_MS + 10_000, LIMIT_MS)
    assert (lane.partition, lane.unclear) == (1, f"{doubt}, {OTHER_KEYS}")


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("one_key", [False, True], ids=["another column", "one key"])
def test_with_keys_of_other_records_it_is_unclear_whether_a_partition_stopped(
    spark: SparkSession, tmp_path: Path, one_key: bool
) -> None:
    """Message keys that were sent too go on in the other partitions."""
    written = changed(
        lambda out: [
            part._replace(message_key="k-00000" if one_key else bucket_key(part))
            for part in without_later_records(out)
        ]
    )
    recorded = with_sends((13, 100, 101), (14, ONE, ONE), DONE)
    case = judged_case(spark, tmp_path, written, recorded)
    output = append_times_of(case)
    rows = output.records.select("timestamp_ms", "partition").collect()
    lanes = (np.array([r.timestamp_ms for r in rows]), np.array([r.partition for r in rows]))
    (lane,) = stopped_partitions(case, output, lanes, BEGAN_MS + 10_000, LIMIT_MS)
    assert (lane.partition, lane.unclear) == (1, f"{OTHER_COLUMN}, {OTHER_KEYS}")


def test_after_an_earlier_fault_a_partition_may_have_been_silent_before() -> None:
    first_ms, quick = 900, every_100_ms(8)
    for injected_ms, unclear in ((1_100, ""), (1_101, SILENT_BEFORE)):
        columns = np.array([(stamp, 0) for stamp in quick], dtype=np.int64).T
        (lane,) = _silent_partitions(columns[0], columns[1], injected_ms, 9_000, 500, first_ms)
        assert (lane.unclear, lane.usual_gap_ms) == (unclear, 100)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("cut_s", "keys"), [(11.0, []), (14.9, []), (16.9, []), (17.0, [1]), (40.0, [1])]
)
def test_a_silence_counts_until_another_fault_at_the_longest(
    spark: SparkSession, tmp_path: Path, cut_s: float, keys: list[int]
) -> None:
    recorded = with_sends((13.0, 100, 101), (14.0, ONE, ONE), DONE)
    assert keys_of(spark, tmp_path, recorded, cut_s) == keys


def test_a_key_written_to_another_partition_is_not_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As after a rescale."""
    moved = [
        out._replace(partition=2) if out.partition == 1 and out.at_s > LAST_S else out
        for out in changed(lambda out: [out])
    ]
    case = judged_case(spark, tmp_path, moved, with_sends((13, 100, 101), (14, ONE, ONE), DONE))
    output = append_times_of(case)
    rows = output.records.select("timestamp_ms", "partition").collect()
    lanes = (np.array([r.timestamp_ms for r in rows]), np.array([r.partition for r in rows]))
    assert stopped_partitions(case, output, lanes, BEGAN_MS + 10_000, LIMIT_MS) == ()
