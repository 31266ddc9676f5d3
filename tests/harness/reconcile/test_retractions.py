"""Changelogs: rows left after all retractions, and retractions of rows that were never written."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.final_state import final_records
from streamquake.harness.reconcile.reconcile import reconcile
from streamquake.harness.reconcile.shape import Shape
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import comparison_of, nonzero_counts, write_rows

SHAPE = Shape(
    identity=("trial", "key"),
    compare=("total",),
    lane=("partition",),
    position="offset",
    retracts="back",
)
COLUMNS = "trial int, key string, total bigint, back boolean, partition int, offset bigint"
KEY, TOTAL = "IF(op = 'd', before.key, after.key)", "IF(op = 'd', before.total, after.total)"
DEBEZIUM: dict[str, Any] = {
    "actual_key": KEY,
    "compare": "total",
    "actual_compare": TOTAL,
    "retracts": "op = 'd'",
}


@pytest.mark.nightly
def test_the_final_state_matches_a_count_of_the_records(spark: SparkSession) -> None:
    """Forty random changelogs of few keys and totals, one total null, in any order."""
    draw = random.Random(4)
    rows = [
        (trial, draw.choice("ab"), draw.choice([None, 1, 2]), draw.random() < 0.4, at % 2, at)
        for trial in range(40)
        for at in range(draw.randrange(12))
    ]
    balance: Counter[tuple[Any, ...]] = Counter()
    for *record, is_retraction, _, _ in rows:
        balance[tuple(record)] += -1 if is_retraction else 1
    actual = spark.createDataFrame(rows, COLUMNS)
    nothing = spark.createDataFrame([], "trial int, key string, total bigint")

    with final_records(actual, SHAPE) as final:
        remaining = Counter((row.trial, row.key, row.total) for row in final.collect())
    result = reconcile(nothing, actual, SHAPE)

    assert remaining == +balance
    assert (result.counts["actual"], result.counts["phantom"]) == ((+balance).total(),) * 2
    assert result.counts["unmatched_retraction"] == (-balance).total() > 0


def test_of_equal_records_the_last_ones_remain(spark: SparkSession) -> None:
    rows = [(0, "a", 1, False, 0, at) for at in range(3)] + [(0, "a", 1, True, 0, 3)]

    with final_records(spark.createDataFrame(rows, COLUMNS), SHAPE) as final:
        assert sorted(row.offset for row in final.collect()) == [1, 2]


def debezium(*changes: tuple[str, str, int]) -> list[dict[str, Any]]:
    """Changes as Flink's debezium-json writes them."""
    rows = []
    for sign, key, total in changes:
        row = {"key": key, "total": total}
        added = sign == "+"
        rows.append(
            {
                "before": None if added else row,
                "after": row if added else None,
                "op": "c" if added else "d",
            }
        )
    return rows


@pytest.fixture
def expected(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "e.json", [{"key": "a", "total": 3}, {"key": "b", "total": 5}])


@pytest.mark.nightly
def test_a_changelog_is_judged_by_its_final_state(
    spark: SparkSession, tmp_path: Path, expected: Path
) -> None:
    changes = [("+", "a", 1), ("+", "b", 5), ("-", "a", 1), ("+", "a", 3)]
    actual = write_rows(tmp_path / "a.json", debezium(*changes))

    result = comparison_of(spark, expected, actual, "key", **DEBEZIUM)

    assert result.outcome == Outcome.HELD
    assert (result.counts["actual"], result.counts["unmatched_retraction"]) == (2, 0)


@pytest.mark.nightly
def test_replayed_changes_are_unmatched_retractions_and_duplicates(
    spark: SparkSession, tmp_path: Path, expected: Path
) -> None:
    """The job failed after 1, 2 and 3 and continued from 1. Key b was retracted, and a line is no
    JSON."""
    first = [("+", "a", 1), ("-", "a", 1), ("+", "a", 2), ("-", "a", 2), ("+", "a", 3)]
    again = [("-", "a", 1), ("+", "a", 2), ("-", "a", 2), ("+", "a", 3)]
    changes = [*first, *again, ("+", "b", 5), ("-", "b", 5)]
    actual = write_rows(tmp_path / "a.json", debezium(*changes))
    actual.write_text(actual.read_text() + "broken\n")

    result = comparison_of(spark, expected, actual, "key", **DEBEZIUM)

    assert {name: n for name, n in nonzero_counts(result).items() if n} == {
        "lost": 1,
        "duplicated": 1,
        "phantom": 1,
        "malformed": 1,
        "unmatched_retraction": 1,
    }
    (unmatched,) = (
        finding for finding in result.findings if finding.what == "unmatched_retraction"
    )
    assert unmatched.detail == {"key": "a", "total": 1}
    assert result.reasons[-1] == "1 unmatched_retraction"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_a_field_can_mark_retractions(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    rows = [{"key": "a", "back": False}, {"key": "b", "back": False}, {"key": "b", "back": True}]
    sent = write_rows(tmp_path / "e.json", [{"key": "a"}])
    received = write_rows(tmp_path / f"a.{kind}", rows)
    condition = "back = 'True'" if kind == "csv" else "back"

    assert comparison_of(spark, sent, received, "key", retracts=condition).outcome == Outcome.HELD
    assert (
        comparison_of(spark, sent, received, "key", retracts=f"NOT ({condition})").counts["phantom"]
        == 0
    )


def test_an_expression_that_is_no_condition_is_rejected(
    spark: SparkSession, tmp_path: Path, expected: Path
) -> None:
    actual = write_rows(tmp_path / "a.json", debezium(("+", "a", 1), ("-", "a", 1)))

    with pytest.raises(BadInput, match="--retracts: expected a condition, got string; write one"):
        comparison_of(spark, expected, actual, "key", actual_key=KEY, retracts="op")


def test_retractions_without_a_condition_cannot_be_judged(
    spark: SparkSession, tmp_path: Path
) -> None:
    same = write_rows(tmp_path / "e.json", [{"key": "a"}])

    result = comparison_of(spark, same, same, "key", also=("unmatched_retraction",))

    assert (result.outcome, result.counts["unmatched_retraction"]) == (Outcome.UNDECIDED, None)
    assert "--retracts" in result.reasons[0]
