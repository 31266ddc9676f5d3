"""Any two data sets: every class planted in every format, and what makes a verdict undecided."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.comparison import COUNTS
from streamquake.reports.outcome import Outcome
from tests.harness.reconcile.data_sets import FORMATS, compared, found, write

ROWS = [{"id": f"k{n % 3}", "seq": n, "amount": n * 7, "ack": "ok", "at": n} for n in range(1, 31)]


def planted() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """One record of each class: (expected, actual)."""
    expected = [dict(row) for row in ROWS]
    actual = [dict(row) for row in ROWS]
    expected[20]["ack"] = "unknown"  # there all the same
    expected[21]["ack"] = "unknown"  # and this one is not
    expected[22]["ack"] = "fail"  # a phantom
    actual[9]["at"], actual[12]["at"] = actual[12]["at"], actual[9]["at"]  # reordered
    actual[5]["amount"] = -1  # changed
    del actual[21]
    del actual[0]  # lost
    actual.append({"id": "k9", "seq": 1, "amount": 0, "ack": "ok", "at": 100})  # never sent
    actual.append({**ROWS[2], "at": 101})  # duplicated
    actual.append({**ROWS[3], "at": 102, "amount": -2})  # duplicated and changed
    return expected, actual


@pytest.mark.parametrize("kind", FORMATS)
def test_every_class_is_found_in_every_format(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    expected, actual = planted()

    result = compared(
        spark, write(tmp_path / f"e.{kind}", expected), write(tmp_path / f"a.{kind}", actual),
        sequence="seq", compare="amount", order="at", ack="ack",
    )  # fmt: skip

    assert result.counts == {
        "expected": 27, "actual": 31, "lost": 1, "duplicated": 2, "phantom": 2, "changed": 2,
        "reordered": 1, "unknown_arrived": 1, "unknown_absent": 1, "malformed": 0,
    }  # fmt: skip
    assert result.outcome == Outcome.VIOLATED
    by_class = {each.what: each for each in result.findings}
    assert set(by_class) == {
        "lost", "duplicated", "phantom", "phantom, though the send was refused", "changed",
        "reordered",
    }  # fmt: skip
    assert by_class["lost"].detail["id"] == "k1"
    back = by_class["reordered"].detail
    assert int(back["before"]) > int(back["seq"])
    assert f"a.{kind}" in by_class["duplicated"].where


@pytest.mark.parametrize(
    ("kind", "other"), [("json", "csv"), ("csv", "parquet"), ("parquet", "json")]
)
def test_the_same_records_are_the_same_in_every_format(
    spark: SparkSession, tmp_path: Path, kind: str, other: str
) -> None:
    result = compared(
        spark, write(tmp_path / f"e.{kind}", ROWS), write(tmp_path / f"a.{other}", ROWS),
        "id, seq", compare="amount", ack="ack", sequence="at",
    )  # fmt: skip

    assert found(result) == {"reordered": None}
    assert result.outcome == Outcome.HELD
    assert result.counts["expected"] == len(ROWS)
    assert set(result.counts) == set(COUNTS)


def test_what_was_not_asked_is_not_judged(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "e.json", ROWS)

    assert found(compared(spark, path, path, "seq")) == {"changed": None, "reordered": None}


def test_a_null_order_cannot_be_judged(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "e.json", [*ROWS, {"id": "k0", "seq": 0, "at": None}])

    result = compared(spark, path, path, sequence="seq", order="at")

    assert result.counts["reordered"] is None
    assert "--order is null for 1 records" in result.notes[0]


def test_records_of_the_same_moment_are_not_reordered(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "e.json", [{"id": "a", "seq": seq, "at": 1} for seq in (3, 1, 2)])

    assert compared(spark, path, path, sequence="seq", order="at").counts["reordered"] == 0


def test_text_is_ordered_by_what_it_says(spark: SparkSession, tmp_path: Path) -> None:
    """Numbers, moments and other texts, of which two are one number and two one moment."""
    second = "2026-01-01T00:00:1"
    texts = ["-1.5", "-0.5", "0.25", "3", "3.0", "3.01", "20",
             f"{second}0Z", f"{second}0+00:00", f"{second}0.5Z", f"{second}1Z", "x"]  # fmt: skip
    rows = [{"id": "a", "at": text, "n": n} for n, text in enumerate(texts)]
    path = write(tmp_path / "e.json", rows)

    assert compared(spark, path, path, sequence="at", order="n").counts["reordered"] == 0
    assert compared(spark, path, path, sequence="n", order="at").counts["reordered"] == 0
    back = compared(spark, path, path, sequence="at", order="-n")
    assert back.counts["reordered"] == len(texts) - 3
    assert [each.detail["before"] for each in back.findings] == [
        "x", f"{second}1+00:00", f"{second}0.500000+00:00", f"{second}0+00:00", 20, 3.01, 3, 0.25,
    ]  # fmt: skip


BROKEN = {
    "json": [
        '{"id": 2', '{"id": 2}{"id": 3}', "[1]", "17", '{"id": 2}}',
        '{"id": 12345678901234567890123456789012345678901}',
    ],
    "csv": ["2", "2,3,4"],
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_what_cannot_be_read_is_a_phantom_or_leaves_undecided(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    good, bad, broken = tmp_path / f"good.{kind}", tmp_path / f"bad.{kind}", BROKEN[kind]
    lines = '{"id": 1}\n{"id": null}\n' if kind == "json" else "id,other\n1,1\n,1\n"
    good.write_text(lines)
    bad.write_text("".join([lines, *(f"{line}\n" for line in broken)]))

    actual = compared(spark, good, bad)
    expected = compared(spark, bad, good)

    count = len(broken)
    assert found(actual) == {
        "phantom": count, "malformed": count, "changed": None, "reordered": None,
    }  # fmt: skip
    assert actual.counts["actual"] == 2 + count
    assert {(each.what, each.detail["side"]) for each in actual.findings} == {
        ("malformed", "actual")
    }
    assert all("bad." in each.where for each in actual.findings)
    shown = [each.detail["record"] for each in actual.findings]
    assert shown == broken
    assert expected.outcome == Outcome.UNDECIDED
    assert expected.counts["phantom"] is None
    assert "could not be read" in expected.reasons[0]


def test_what_is_lost_is_lost_though_an_expected_record_cannot_be_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "e.json").write_text('{"id": 1}\n{"id": 2}\nbroken\n')
    (tmp_path / "a.json").write_text('{"id": 1}\n')

    assert compared(spark, tmp_path / "e.json", tmp_path / "a.json").outcome == Outcome.VIOLATED


def test_two_empty_sides_prove_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text("")
    (tmp_path / "a.csv").write_text("id,seq\n")

    result = compared(spark, tmp_path / "e.json", tmp_path / "a.csv")

    assert result.outcome == Outcome.UNDECIDED
    assert "nothing was expected" in result.reasons[0]


def test_an_empty_side_has_lost_everything(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("")

    result = compared(spark, write(tmp_path / "e.json", ROWS), tmp_path / "a.json", "seq")

    assert result.counts["lost"] == len(ROWS)
