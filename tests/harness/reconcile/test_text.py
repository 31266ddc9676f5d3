"""Plain text as a side: lines of files, and values of topics, as verifiable producers write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.comparison import DataComparison
from tests.harness.reconcile.data_sets import comparison_of, nonzero_counts, write_rows
from tests.harness.reconcile.stub_topic import stub_topic

SENT = [{"name": "producer_send_success", "value": f"1.{n}", "partition": n % 2} for n in range(6)]
NOT_JUDGED = {"changed": None, "reordered": None}


def compare_topic(
    spark: SparkSession,
    patch: pytest.MonkeyPatch,
    sent: Path,
    values: Sequence[bytes | None],
    key: str = "value",
    **options: Any,
) -> DataComparison:
    topic = stub_topic(patch, values, partitions=2)
    return comparison_of(spark, sent, topic, key, **options)


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "e.json", SENT)


@pytest.mark.nightly
def test_a_verifiable_producer_is_reconciled(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, sent: Path
) -> None:
    """1.0 and 1.2 are missing, 1.5 is present twice, one value is no text, one was never sent."""
    values = [b"1.1", b"1.3", b"1.5", b"1.5", b"\xff1.2", b"1.4", b"1.9", None]

    result = compare_topic(spark, monkeypatch, sent, values, actual_format="text")

    assert nonzero_counts(result) == {
        "lost": 2,
        "duplicated": 1,
        "phantom": 3,
        "malformed": 1,
        **NOT_JUDGED,
    }
    (broken,) = (finding for finding in result.findings if finding.what == "malformed")
    assert broken.detail["record"] == b"\xff1.2".hex().upper()


@pytest.mark.nightly
def test_a_number_within_the_text_is_its_sequence(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, sent: Path
) -> None:
    """In partition 1, 1.5 is before 1.3."""
    values = [b"1.0", b"1.1", b"1.2", b"1.5", b"1.4", b"1.3"]
    half = "CAST(split(value, '[.]')[1] AS INT)"

    result = compare_topic(
        spark,
        monkeypatch,
        sent,
        values,
        "split(value, '[.]')[0]",
        sequence=half,
        compare="partition",
        actual_compare="_partition",
        actual_format="text",
    )

    assert nonzero_counts(result) == {"reordered": 1}


@pytest.mark.nightly
def test_values_that_are_no_json_are_reported_with_advice(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, sent: Path
) -> None:
    result = compare_topic(spark, monkeypatch, sent, [b"1.0", b"1.1"])

    assert nonzero_counts(result) == {"lost": 6, "phantom": 2, "malformed": 2, **NOT_JUDGED}
    message = "no record of the actual side could be read: is its format right?"
    assert [note[: len(message)] for note in result.notes] == [message]


def test_lines_of_files_beside_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """Blank lines are no records; 007 is no number, so it is a record of its own."""
    sent = write_rows(tmp_path / "e.parquet", [{"n": n} for n in (7, 8, 9)])
    (tmp_path / "received.txt").write_text("8\n\n007\n9")

    result = comparison_of(
        spark, sent, tmp_path / "received.txt", "n", actual_key="value", actual_format="text"
    )

    assert nonzero_counts(result) == {"lost": 1, "phantom": 1, **NOT_JUDGED}
