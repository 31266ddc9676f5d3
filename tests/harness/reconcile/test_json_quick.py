"""Lines read with guessed types have the same values as variants, or are marked as uncertain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.json import json_quick, json_record, quick_record
from streamquake.harness.reconcile.json.json_quick import UNCERTAIN, guess_types, read_with_types
from streamquake.harness.reconcile.json.json_record import sample_lines
from streamquake.harness.reconcile.json.json_table import json_table
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, Table

NAMES = ("ok", "seq", "user")
KINDS = {"ok": "boolean", "seq": "bigint", "user": "string"}
PLAIN = [
    '{"user": "a", "seq": 1, "ok": true}',
    '{"user":"b\\u00e9\\"x\\"","seq":-9223372036854775808,"ok":false}',
    '{"user": "{ \\\\", "seq": 2, "ok": true}',
    ' {"user" : "", "seq": 3, "ok": true, "note": "\\"user\\": 7"}\t',
]
UNCERTAIN_SAME_TYPES = [
    '{"user": null, "seq": 4, "ok": true}',
    '{"seq": 5, "ok": true}',
    '{"user": "n", "seq": 7, "ok": true, "inner": {"user": 7}}',
    '{"us\\u0065r": "hidden", "seq": 9, "ok": null}',
    '{"user": "first", "user": "last", "seq": 1, "ok": true}',
    '{"user": "first", "user" : "last", "seq": 1, "ok": true}',
    '{"user": "a", "user": 7, "seq": 1, "ok": true}',
    '{"user": "a", "us\\u0065r": 7, "seq": 1, "ok": true}',
    '{"user": "a", "seq": 1, "ok": true, "note": 1, "note" :1}',
    '{"user": "\\ud800", "seq": 1, "ok": true}',
    '{"user": "torn", "seq": 1',
    '{"user": "two", "seq": 1, "ok": true}{"user": "three"}',
    '{"user": "a", "seq": 1e0, "ok": true}',
    "[1]",
]
"""Uncertain lines: malformed, or with values of the guessed types."""
UNCERTAIN_OTHER_TYPES = [
    '{"user": "a", "seq": 1.0, "ok": true}',
    '{"user": 7, "seq": 1, "ok": true}',
    '{"a\\"user": "x", "user" : 7, "seq": 1, "ok": true}',
    '{"user" : 7, "seq": 1, "ok": true, "a\\"user":"x"}',
    '{"user": ["a"], "seq": 1, "ok": true}',
    '{"user": {"user": "a"}, "seq": 1, "ok": true}',
    '{"user": "a", "seq": "1", "ok": true}',
    '{"user": "a", "seq": 9223372036854775808, "ok": true}',
    '{"user": "a", "seq": 1, "ok": 1}',
]
"""Uncertain lines with values of other types than the guessed ones."""


@pytest.fixture(autouse=True, params=["Arrow", "Spark"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both readers must read the same: on this machine Arrow, on other masters Spark."""
    monkeypatch.setattr(quick_record, "runs_here", lambda session: request.param == "Arrow")


def table(
    spark: SparkSession, path: Path, lines: list[str], names: tuple[str, ...] = NAMES
) -> Table:
    path.write_text("\n".join(lines) + "\n")
    text = spark.read.text(str(path)).withColumn("_line", F.monotonically_increasing_id())
    return json_table(text, ("_line",), names)


def rows(lines_table: Table) -> list[Row]:
    """The value of each field and whether it is missing, and the raw text of malformed lines."""
    missing = {
        name: F.col(lines_table.missing[name])
        if name in lines_table.missing
        else F.isnull(lines_table.variants[name])
        for name in NAMES
    }
    columns: list[Any] = ["_line", *NAMES, MALFORMED, RAW]
    columns += [column.alias(f"no_{name}") for name, column in missing.items()]
    return lines_table.frame.select(*columns).orderBy("_line").collect()


@pytest.mark.nightly
def test_lines_of_another_form_are_uncertain(spark: SparkSession) -> None:
    lines = [*PLAIN, *UNCERTAIN_SAME_TYPES, *UNCERTAIN_OTHER_TYPES]
    frame = spark.createDataFrame(list(enumerate(lines)), "n int, value string")

    sample = sample_lines(frame.limit(len(PLAIN)))
    cells = {name: f"c_{name}" for name in NAMES}
    marked_rows = read_with_types(frame, sample, ("n",), cells, KINDS).orderBy("n")

    rows_by_number = {row.n: row for row in marked_rows.collect()}
    assert [n for n, row in rows_by_number.items() if row[UNCERTAIN]] == [
        *range(len(PLAIN), len(lines))
    ]
    assert [
        (rows_by_number[n].c_user, rows_by_number[n].c_seq, rows_by_number[n].c_ok)
        for n in range(len(PLAIN))
    ] == [
        ("a", 1, True),
        ('bé"x"', -(2**63), False),
        ("{ \\", 2, True),
        ("", 3, True),
    ]


@pytest.mark.nightly
def test_uncertain_lines_are_read_as_without_a_guess(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [*PLAIN, *UNCERTAIN_SAME_TYPES]
    exact = table(spark, tmp_path / "exact.json", lines)
    monkeypatch.setattr(json_quick, "MIN_SAMPLE", len(PLAIN))
    guess = table(spark, tmp_path / "guess.json", lines)

    assert (set(exact.missing), set(guess.missing)) == (set(), set(NAMES))
    assert rows(guess) == rows(exact)


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize("number", [0, len(PLAIN)], ids=["in the sample", "behind it"])
def test_a_field_with_the_name_of_the_place_is_noticed_in_any_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(json_quick, "MIN_SAMPLE", len(PLAIN))
    lines = [*PLAIN]
    lines.insert(number, '{"user": "a", "seq": 1, "ok": true, "_line": null}')

    monkeypatch.setattr(json_record, "SAMPLE_SIZE", len(PLAIN))
    named = table(spark, tmp_path / "named.json", lines, (*NAMES, "_line"))
    unnamed = table(spark, tmp_path / "unnamed.json", lines)
    without = table(spark, tmp_path / "without.json", PLAIN, (*NAMES, "_line"))

    assert named.hidden == {"_line"}
    assert not unnamed.hidden | without.hidden
    assert set(named.missing) == set(NAMES)
    assert rows(named) == rows(unnamed)


def test_a_wrong_guess_is_dropped(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_quick, "MIN_SAMPLE", len(PLAIN))

    lines_table = table(spark, tmp_path / "lines.json", [*PLAIN, UNCERTAIN_OTHER_TYPES[0]])

    assert lines_table.missing == {}
    assert set(lines_table.variants) == set(NAMES)


def test_only_fields_of_one_type_are_guessed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = '{"a": 1, "b": 1.5, "c": "x", "d": null, "e": true, "f%d": 1, "g\\u00e9": "x", "h": %s}'
    lines = [(line % (n, n if n else '"0"'),) for n in range(3)]
    frame = spark.createDataFrame(lines, "value string")
    monkeypatch.setattr(json_quick, "MIN_SAMPLE", 3)

    names = ("a", "b", "c", "d", "e", "f0", "gé", "h", "none")
    kinds = {"a": "bigint", "c": "string", "e": "boolean", "gé": "string"}
    assert guess_types(sample_lines(frame), names) == kinds
    monkeypatch.setattr(json_quick, "MIN_SAMPLE", 4)
    assert guess_types(sample_lines(frame), names) == {}
