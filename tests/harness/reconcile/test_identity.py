"""What equals what: exactly, within a format and across formats."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import compared

Matches = dict[str, bool]


def json_lines(path: Path, values: list[str]) -> Path:
    """One record a value: `n` tells which, `v` is the value as JSON (nothing: no such field)."""
    lines = (f'{{"n": {n}' + (f', "v": {v}' if v else "") + "}\n" for n, v in enumerate(values))
    path.write_text("".join(lines))
    return path


def csv_rows(path: Path, values: list[str]) -> Path:
    path.write_text("n,v\n" + "".join(f"{n},{v}\n" for n, v in enumerate(values)))
    return path


def parquet(path: Path, values: list[Any], kind: pyarrow.DataType) -> Path:
    columns = {"n": list(range(len(values))), "v": pyarrow.array(values, kind)}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def differing(spark: SparkSession, expected: Path, actual: Path) -> set[int]:
    """Which records differ: a phantom for each lost one, or else the comparison is wrong."""
    result = compared(spark, expected, actual, "n,v")
    lost = {int(f.detail["n"]) for f in result.findings if f.what == "lost"}
    phantoms = {int(f.detail["n"]) for f in result.findings if f.what == "phantom"}
    assert lost == phantoms
    assert result.counts["lost"] == len(lost)
    return lost


def test_json_against_json(spark: SparkSession, tmp_path: Path) -> None:
    pairs = [
        ('"7"', "7"), ('"007"', '"7"'), ('"a "', '"a"'), ('"é"', '"e\u0301"'), ('""', "null"),
        ("null", ""), ("9007199254740993", "9007199254740992"),
        ("99999999999999999999999999999999999998", "99999999999999999999999999999999999999"),
    ]  # fmt: skip
    same = [("1.0", "1"), ("1e3", "1000"), ("null", "null"), ("true", "true"),
            ('{"a": 1, "b": [1.0]}', '{"b": [1], "a": 1}')]  # fmt: skip
    expected = json_lines(tmp_path / "e.json", [one for one, _ in [*pairs, *same]])
    actual = json_lines(tmp_path / "a.json", [other for _, other in [*pairs, *same]])

    assert differing(spark, expected, actual) == set(range(len(pairs)))


def test_whole_numbers_beyond_floating_point_stay_exact(
    spark: SparkSession, tmp_path: Path
) -> None:
    numbers = [2**53 + 1, 2**63 - 1, 2**63 + 1, 10**37 + 1]
    values = [str(n) for n in numbers] + [str(n + 1) for n in numbers]
    column = parquet(
        tmp_path / "p.parquet", [decimal.Decimal(n) for n in numbers * 2], pyarrow.decimal128(38)
    )
    later = set(range(len(numbers), 2 * len(numbers)))

    assert differing(spark, column, json_lines(tmp_path / "a.json", values)) == later
    assert differing(spark, csv_rows(tmp_path / "e.csv", values), column) == later


def test_csv_against_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """A CSV field is the number that JSON would write so."""
    rows = csv_rows(tmp_path / "a.csv", ["7", "7.0", "007", "+7", " 7", "", '""', "seven", "70e-1"])
    numbers = [7, 7, 7, 7, 7, None, None, 7, 7]
    column = parquet(tmp_path / "p.parquet", numbers, pyarrow.int32())
    lines = ["null" if number is None else str(number) for number in numbers]

    assert differing(spark, column, rows) == {2, 3, 4, 6, 7}
    assert differing(spark, json_lines(tmp_path / "e.json", lines), rows) == {2, 3, 4, 6, 7}


def test_floating_point_against_whole_numbers_and_fractions(
    spark: SparkSession, tmp_path: Path
) -> None:
    column = parquet(tmp_path / "p.parquet", [0.1, 7.0, 2.0**53, 1e22], pyarrow.float64())
    lines = json_lines(tmp_path / "a.json", ["0.1", "7", str(2**53 + 1), "1e22"])

    assert differing(spark, column, lines) == {2}


def test_times(spark: SparkSession, tmp_path: Path) -> None:
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 600000, dt.UTC)
    column = parquet(tmp_path / "p.parquet", [moment] * 5, pyarrow.timestamp("us", "UTC"))
    texts = [
        "2026-01-02T03:04:05.6Z", "2026-01-02 03:04:05.600", "2026-01-02T04:04:05.6+01:00",
        "2026-01-02", "soon",
    ]  # fmt: skip
    lines = json_lines(tmp_path / "a.json", [f'"{text}"' for text in texts])

    assert differing(spark, column, lines) == {3, 4}
    assert differing(spark, csv_rows(tmp_path / "a.csv", texts), column) == {3, 4}


def test_times_without_a_zone_and_in_nanoseconds(spark: SparkSession, tmp_path: Path) -> None:
    """As pandas writes them; a part of a microsecond makes them whole numbers."""
    moments = [dt.datetime(2026, 1, 2, 3, 4, 5, 600000), dt.datetime(1969, 12, 31, 23, 59, 59)]
    utc = parquet(tmp_path / "utc.parquet", moments, pyarrow.timestamp("us", "UTC"))
    micros = parquet(tmp_path / "us.parquet", moments, pyarrow.timestamp("us"))
    nanos = parquet(tmp_path / "ns.parquet", moments, pyarrow.timestamp("ns"))
    finer = parquet(tmp_path / "finer.parquet", [1, 2000], pyarrow.timestamp("ns"))

    assert differing(spark, utc, micros) == set()
    assert differing(spark, utc, nanos) == set()
    assert differing(spark, finer, finer) == set()
    with pytest.raises(BadInput, match=r"timestamp on the expected side and bigint"):
        compared(spark, utc, finer, "n,v")


def test_text_against_text(spark: SparkSession, tmp_path: Path) -> None:
    texts = ["7", "1.0", "a", "A"]
    column = parquet(tmp_path / "p.parquet", texts, pyarrow.string())
    lines = json_lines(tmp_path / "a.json", [f'"{text}"' for text in ["7", "1", "a", "a"]])

    assert differing(spark, column, lines) == {1, 3}
    assert differing(spark, column, csv_rows(tmp_path / "a.csv", texts)) == set()


def test_json_of_another_kind_differs_and_a_hint_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = json_lines(tmp_path / "e.json", ['"7"'])
    actual = json_lines(tmp_path / "a.json", ["7"])

    result = compared(spark, expected, actual, "v")

    assert (result.counts["lost"], result.counts["phantom"]) == (1, 1)
    assert "CAST" in result.notes[0]


def test_declared_types_of_other_kinds_cannot_be_compared(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = parquet(tmp_path / "e.parquet", ["7"], pyarrow.string())
    actual = parquet(tmp_path / "a.parquet", [7], pyarrow.int64())

    with pytest.raises(BadInput, match=r"`v` cannot be compared: it is string .* bigint .* CAST"):
        compared(spark, expected, actual, "v")
    assert compared(spark, expected, actual, "v", actual_key="string(v)").counts["lost"] == 0


def test_a_null_key_is_a_key_and_no_broken_record(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('{"v": null}\n{"v": 1}\n')
    (tmp_path / "a.json").write_text('{"v": 1}\nbroken\n')

    result = compared(spark, tmp_path / "e.json", tmp_path / "a.json", "v")

    assert (result.counts["lost"], result.counts["phantom"]) == (1, 1)


def test_empty_text_and_null_in_csv(spark: SparkSession, tmp_path: Path) -> None:
    lines = json_lines(tmp_path / "e.json", ['""', "null", '""', "null", '"null"'])
    rows = csv_rows(tmp_path / "a.csv", ['""', "", "", '""', "null"])

    assert differing(spark, lines, rows) == {2, 3}


def test_a_field_that_is_missing_is_null_beside_what_cannot_say_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = json_lines(tmp_path / "e.json", ["1", "null", ""])
    column = parquet(tmp_path / "a.parquet", [1, None, None], pyarrow.int64())

    assert differing(spark, lines, column) == set()


def test_values_of_several_kinds_against_csv_and_text(spark: SparkSession, tmp_path: Path) -> None:
    lines = json_lines(tmp_path / "e.json", ["7", '"7"', "1.50", "true", '"x"', "null", "7"])
    fields = ["7", "7", "1.5", "true", "x", None, "8"]
    rows = csv_rows(tmp_path / "a.csv", [field or "" for field in fields])
    column = parquet(tmp_path / "a.parquet", fields, pyarrow.string())

    assert differing(spark, lines, rows) == {6}
    assert differing(spark, lines, column) == {0, 2, 3, 6}


def test_objects_against_structs(spark: SparkSession, tmp_path: Path) -> None:
    lines = json_lines(tmp_path / "e.json", ['{"b": [1.0, 0.5], "a": 2}', '{"a": 2.5, "b": []}'])
    kind = pyarrow.struct({"a": pyarrow.float64(), "b": pyarrow.list_(pyarrow.float64())})
    values = [{"a": 2.0, "b": [1, 0.5]}, {"a": 2.25, "b": []}]

    assert differing(spark, lines, parquet(tmp_path / "a.parquet", values, kind)) == {1}


def test_a_field_of_what_is_an_object_in_some_records_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = ['{"n": 1, "p": {"a": 1}}', '{"n": 2, "p": "text"}', '{"n": 3}', '{"n": 4, "p": {}}']
    (tmp_path / "e.json").write_text("\n".join(lines))
    (tmp_path / "a.json").write_text("\n".join([lines[0].replace("1}}", "2}}"), *lines[1:]]))

    result = compared(spark, tmp_path / "e.json", tmp_path / "a.json", "n", compare="p.a")

    assert (result.counts["changed"], result.counts["lost"]) == (1, 0)
    (finding,) = result.findings
    assert (finding.detail["sent"], finding.detail["seen"]) == ([{"p.a": 1}], [{"p.a": 2}])


def test_nested_fields_and_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('{"a b": {"c.d": 1}, "ID": 1, "id": 2}\n')
    (tmp_path / "a.json").write_text('{"a b": {"c.d": 2}, "ID": 1, "id": 3}\n')
    both = tmp_path / "e.json", tmp_path / "a.json"

    assert compared(spark, *both, "`a b`.`c.d`").counts["lost"] == 1
    assert compared(spark, *both, "ID").counts["lost"] == 0
    assert compared(spark, *both, "concat(ID, ',', 'x'), id").counts["lost"] == 1

    odd = tmp_path / "odd.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a`b": [1], "c.d": [2], "_key": [3]}), odd)
    assert compared(spark, odd, odd, "`a``b`, `c.d`, _key").counts["lost"] == 0
