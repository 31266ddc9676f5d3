"""Pauses within a span, from a handful of records, and the keys that were sent throughout."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from streamquake.harness.verdict.evidence.pauses import (
    OtherCauses,
    TimeSpan,
    keys_sent_throughout,
    last_sends,
    longest_pauses,
    with_own_ms,
)
from streamquake.harness.verdict.evidence.sent_times import SentRange

SPAN = TimeSpan(1_000, 2_000)
Record = tuple[str, int, int, int]


def pauses(
    spark: SparkSession, *records: Record, by: str = "key", span: TimeSpan = SPAN
) -> dict[str | int, Row]:
    """The longest pause of each group, of records as (key, partition, offset, stamp)."""
    columns = "key string, partition int, offset bigint, timestamp_ms bigint"
    frame: DataFrame = spark.createDataFrame(records, columns)
    return {row.of: row for row in longest_pauses(frame, by, span).collect()}


def test_a_pause_counts_where_it_overlaps_the_span(spark: SparkSession) -> None:
    found = pauses(
        spark,
        # The gap after a record at the span's end is outside of it.
        ("end", 0, 0, 900),
        ("end", 0, 1, 1_900),
        ("end", 0, 2, 2_000),
        ("end", 0, 3, 9_000),
        # Its first record is late, and a longer pause follows.
        ("late", 1, 0, 1_100),
        ("late", 2, 0, 1_600),
        ("late", 1, 1, 2_500),
        # No record is before the span, and later records continue without a pause.
        ("head", 3, 0, 1_700),
        ("head", 3, 1, 1_990),
        ("head", 3, 2, 2_100),
        # Two records of one moment: the later offset is the last before the pause.
        ("tie", 4, 9, 1_000),
        ("tie", 5, 0, 1_000),
        ("tie", 4, 10, 1_900),
    )
    recorded = {name: (row.gap_ms, row.since_ms, row.partition) for name, row in found.items()}
    assert recorded == {
        "end": (1_000, 900, 0),
        "late": (900, 1_600, 2),
        "head": (700, 1_000, 3),
        "tie": (900, 1_000, 5),
    }


def test_a_pause_counts_until_another_fault_at_the_longest(spark: SparkSession) -> None:
    found = pauses(
        spark,
        ("over", 0, 0, 1_900),
        ("over", 0, 1, 9_000),
        ("gone", 1, 0, 1_400),
        ("late", 2, 0, 9_000),
        ("back", 3, 0, 1_100),
        ("back", 3, 1, 1_800),
        ("back", 3, 2, 2_050),
        span=TimeSpan(1_000, 2_000, cut_ms=2_100),
    )
    assert {name: (row.gap_ms, row.since_ms) for name, row in found.items()} == {
        "over": (900, 1_000),
        "gone": (600, 1_400),
        "late": (1_100, 1_000),
        "back": (700, 1_100),
    }


def test_after_an_earlier_fault_a_pause_counts_from_the_call(spark: SparkSession) -> None:
    found = pauses(
        spark,
        ("over", 0, 0, 300),
        ("over", 0, 1, 1_550),
        ("over", 0, 2, 1_800),
        ("gone", 1, 0, 300),
        ("back", 2, 0, 300),
        ("back", 2, 1, 1_150),
        ("back", 2, 2, 2_100),
        ("late", 3, 0, 1_900),
        span=TimeSpan(1_000, 2_000, since_ms=1_200),
    )
    assert {name: (row.gap_ms, row.since_ms) for name, row in found.items()} == {
        "over": (350, 1_200),
        "gone": (800, 1_200),
        "back": (900, 1_200),
        "late": (700, 1_200),
    }
    assert found["gone"].last_ms == 1_200


def test_a_partition_pauses_between_records_of_any_key(spark: SparkSession) -> None:
    found = pauses(
        spark, ("a", 0, 0, 1_000), ("b", 0, 1, 1_300), ("a", 0, 2, 1_950), by="partition"
    )
    assert (found[0].gap_ms, found[0].since_ms) == (650, 1_300)


LATE_S = 4_000
"""Runs are long, so a rounding of moments is visible."""


def note(first: int, last: int, at_s: float) -> SentRange:
    return SentRange(first, last, 0, round((LATE_S + at_s) * 1e9))


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize(
    ("limit_ms", "keys"),
    [(401.0, {"a", "b", "c"}), (400.0, {"c"}), (399.0, {"c"}), (200.0, set())],
)
def test_keys_sent_without_a_pause_of_the_limit_count(
    spark: SparkSession, limit_ms: float, keys: set[str]
) -> None:
    sent = [("a", 0), ("c", 1), ("b", 2), ("c", 3), ("a", 4), ("c", 5), ("b", 6), ("c", 7)]
    spark.createDataFrame([*sent, ("d", 8)], "key string, index bigint").createOrReplaceTempView(
        "sent"
    )
    # Of key a the first record of the first range counts, of key b one between two ranges.
    notes = [note(0, 1, 0.2), note(2, 3, 0.4), note(4, 5, 0.6), note(6, 7, 0.8)]
    span = TimeSpan(LATE_S * 1_000, LATE_S * 1_000 + 1_000)
    found = keys_sent_throughout(spark, notes, 0, span, limit_ms)
    assert {row.key for row in found.collect()} == keys
    assert keys_sent_throughout(spark, [], 0, span, limit_ms).count() == 0


@pytest.mark.parametrize(
    ("causes", "own_ms"),
    [
        (OtherCauses(), {"early": 400, "late": 300}),
        (OtherCauses(silences=((900, 1_100), (1_350, 1_360))), {"early": 290, "late": 300}),
        (OtherCauses(silences=((1_550, 9_000),)), {"early": 400, "late": 50}),
        (OtherCauses(silences=((1_400, 1_500),)), {"early": 400, "late": 300}),
        (OtherCauses(down_until_ms=999), {"early": 400, "late": 300}),
        (OtherCauses(down_until_ms=1_000), {"early": 0, "late": 300}),
        (OtherCauses(silences=((0, 1_100),), down_until_ms=1_500), {"early": 0, "late": 0}),
    ],
)
def test_a_pause_without_what_other_causes_explain(
    spark: SparkSession, causes: OtherCauses, own_ms: dict[str, int]
) -> None:
    """One pause from 1,000 to 1,400 ms, of a group without records, and one from 1,500 to 1,800
    ms."""
    rows = [("early", 400, None), ("late", 300, 1_500)]
    frame = spark.createDataFrame(rows, "of string, gap_ms bigint, since_ms bigint")
    found = {row.of: row.own_ms for row in with_own_ms(frame, SPAN, causes).collect()}
    assert found == own_ms


@pytest.mark.parametrize("has_status", [True, False])
def test_only_acknowledged_sends_are_expected_to_continue(
    spark: SparkSession, has_status: bool
) -> None:
    """The system may never have had a record whose send has an unknown result."""
    session = spark.newSession()
    sends = [
        ("quiet", 10, "unknown"),
        ("quiet", 0, "acknowledged"),
        ("lively", 11, "acknowledged"),
        ("failed", 12, "failed"),
    ]
    frame = session.createDataFrame(sends, "key string, index bigint, status string")
    (frame if has_status else frame.drop("status")).createOrReplaceTempView("sent")
    ranges = [SentRange(10, 12, 1_000_000_000, 2_000_000_000)]

    found = {row["of"]: row.sent_ms for row in last_sends(session, ranges, 5_000).collect()}

    lively = {"lively": 6_000}
    assert found == (lively if has_status else {**lively, "quiet": 6_000, "failed": 6_000})
