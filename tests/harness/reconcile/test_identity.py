"""Which values are equal, within a format and across formats."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile import examples
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import comparison_of


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of some records in a format: its texts in the file; for Parquet its values."""

    format: str
    values: Sequence[Any]
    kind: pyarrow.DataType | None = None


@dataclass(frozen=True, kw_only=True)
class FieldCase:
    """A field of both sides, and which of its records differ."""

    expected: Field
    actual: Field
    differ: frozenset[int] = frozenset()


def json_field(*values: str) -> Field:
    """Values as JSON; an empty text where a record lacks the field."""
    return Field(format="json", values=values)


def csv_field(*values: str) -> Field:
    return Field(format="csv", values=values)


def parquet(kind: pyarrow.DataType, *values: Any) -> Field:
    return Field(format="parquet", values=values, kind=kind)


SAME_JSON = (
    ("1.0", "1"),
    ("1e3", "1000"),
    ("null", "null"),
    ("true", "true"),
    ('{"a": 1, "b": [1.0]}', '{"b": [1], "a": 1}'),
)
OTHER_JSON = (
    ('"7"', "7"),
    ('"007"', '"7"'),
    ('"a "', '"a"'),
    ('"é"', '"e\u0301"'),
    ('""', "null"),
    ("null", ""),
    ("9007199254740993", "9007199254740992"),
    ("99999999999999999999999999999999999998", "99999999999999999999999999999999999999"),
)
ALL_JSON = (*OTHER_JSON, *SAME_JSON)
LARGE = [2**53 + 1, 2**63 - 1, 2**63 + 1, 10**37 + 1]
"""Whole numbers beyond what floating point holds exactly."""
ONE_MORE = [str(n) for n in LARGE] + [str(n + 1) for n in LARGE]
LARGE_COLUMN = parquet(pyarrow.decimal128(38), *(decimal.Decimal(n) for n in LARGE * 2))
SEVENS = csv_field("7", "7.0", "007", "+7", " 7", "", '""', "seven", "70e-1", '"7\n"')
"""Compared with `NUMBERS`: a CSV field is a number only in the spelling of JSON."""
NUMBERS = [7, 7, 7, 7, 7, None, None, 7, 7, 7]
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 600000, dt.UTC)
MOMENTS = parquet(pyarrow.timestamp("us", "UTC"), *[MOMENT] * 5)
TIMES = (
    "2026-01-02T03:04:05.6Z",
    "2026-01-02 03:04:05.600",
    "2026-01-02T04:04:05.6+01:00",
    "2026-01-02",
    "soon",
)
NAIVE = (dt.datetime(2026, 1, 2, 3, 4, 5, 600000), dt.datetime(1969, 12, 31, 23, 59, 59))
"""Times as pandas writes them. Nanoseconds within a microsecond turn a column into whole
numbers."""
FINER = parquet(pyarrow.timestamp("ns"), 1, 2000)
TEXTS = parquet(pyarrow.string(), "7", "1.0", "a", "A")
SEVERAL = json_field("7", '"7"', "1.50", "true", '"x"', "null", "7")
STRUCT = pyarrow.struct({"a": pyarrow.float64(), "b": pyarrow.list_(pyarrow.float64())})
TIMED = pyarrow.struct({"at": pyarrow.timestamp("us", "UTC")})
CASES = {
    "json against json": FieldCase(
        expected=json_field(*(one for one, _ in ALL_JSON)),
        actual=json_field(*(other for _, other in ALL_JSON)),
        differ=frozenset(range(len(OTHER_JSON))),
    ),
    "whole numbers stay exact, parquet and json": FieldCase(
        expected=LARGE_COLUMN, actual=json_field(*ONE_MORE), differ=frozenset(range(4, 8))
    ),
    "whole numbers stay exact, csv and parquet": FieldCase(
        expected=csv_field(*ONE_MORE), actual=LARGE_COLUMN, differ=frozenset(range(4, 8))
    ),
    "csv against a column of numbers": FieldCase(
        expected=parquet(pyarrow.int32(), *NUMBERS),
        actual=SEVENS,
        differ=frozenset({2, 3, 4, 6, 7, 9}),
    ),
    "csv against numbers of json": FieldCase(
        expected=json_field(*("null" if n is None else str(n) for n in NUMBERS)),
        actual=SEVENS,
        differ=frozenset({2, 3, 4, 6, 7, 9}),
    ),
    "floating point against whole numbers and fractions": FieldCase(
        expected=parquet(pyarrow.float64(), 0.1, 7.0, 2.0**53, 1e22),
        actual=json_field("0.1", "7", str(2**53 + 1), "1e22"),
        differ=frozenset({2}),
    ),
    "times against json": FieldCase(
        expected=MOMENTS,
        actual=json_field(*(f'"{text}"' for text in TIMES)),
        differ=frozenset({3, 4}),
    ),
    "times against csv": FieldCase(
        expected=csv_field(*TIMES), actual=MOMENTS, differ=frozenset({3, 4})
    ),
    "times without a zone": FieldCase(
        expected=parquet(pyarrow.timestamp("us", "UTC"), *NAIVE),
        actual=parquet(pyarrow.timestamp("us"), *NAIVE),
    ),
    "times in nanoseconds": FieldCase(
        expected=parquet(pyarrow.timestamp("us", "UTC"), *NAIVE),
        actual=parquet(pyarrow.timestamp("ns"), *NAIVE),
    ),
    "times with parts of a microsecond": FieldCase(expected=FINER, actual=FINER),
    "text against json": FieldCase(
        expected=TEXTS, actual=json_field('"7"', '"1"', '"a"', '"a"'), differ=frozenset({1, 3})
    ),
    "text against csv": FieldCase(expected=TEXTS, actual=csv_field("7", "1.0", "a", "A")),
    "empty text and null in csv": FieldCase(
        expected=json_field('""', "null", '""', "null", '"null"'),
        actual=csv_field('""', "", "", '""', "null"),
        differ=frozenset({2, 3}),
    ),
    "a missing field against a format without missing fields": FieldCase(
        expected=json_field("1", "null", ""), actual=parquet(pyarrow.int64(), 1, None, None)
    ),
    "several kinds against csv": FieldCase(
        expected=SEVERAL,
        actual=csv_field("7", "7", "1.5", "true", "x", "", "8"),
        differ=frozenset({6}),
    ),
    "several kinds against text": FieldCase(
        expected=SEVERAL,
        actual=parquet(pyarrow.string(), "7", "7", "1.5", "true", "x", None, "8"),
        differ=frozenset({0, 2, 3, 6}),
    ),
    "objects against structs": FieldCase(
        expected=json_field('{"b": [1.0, 0.5], "a": 2}', '{"a": 2.5, "b": []}'),
        actual=parquet(STRUCT, {"a": 2.0, "b": [1, 0.5]}, {"a": 2.25, "b": []}),
        differ=frozenset({1}),
    ),
    "times in structs": FieldCase(
        expected=parquet(TIMED, *[{"at": MOMENT}] * 2),
        actual=parquet(TIMED, {"at": MOMENT}, {"at": MOMENT + dt.timedelta(microseconds=1)}),
        differ=frozenset({1}),
    ),
    "times in structs against objects": FieldCase(
        expected=json_field('{"at": "2026-01-02T03:04:05.600Z"}', '{"at": null}'),
        actual=parquet(TIMED, {"at": MOMENT}, {"at": None}),
    ),
}
"""All cases of the same two formats share one comparison, because a comparison takes seconds and a
field takes almost no time. Each case has its own records, in which the fields of the other cases
are null."""
Formats = tuple[str, str]


def of_formats(formats: Formats) -> dict[str, FieldCase]:
    return {
        name: case
        for name, case in CASES.items()
        if (case.expected.format, case.actual.format) == formats
    }


def write(path: Path, fields: Sequence[Field]) -> Path:
    """Write a file of all fields: `n` is the number of the record, `v0`, `v1`, ... are the fields.
    Each field has its values in records of its own."""
    rows = [(at, value) for at, field in enumerate(fields) for value in field.values]
    if path.suffix == ".parquet":
        columns: dict[str, Any] = {"n": list(range(len(rows)))}
        for at, field in enumerate(fields):
            column_values = [value if at == owner else None for owner, value in rows]
            columns[f"v{at}"] = pyarrow.array(column_values, field.kind)
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    elif path.suffix == ".csv":
        names = ",".join(["n", *(f"v{at}" for at in range(len(fields)))])
        row_values = (
            [value if at == owner else "" for at in range(len(fields))] for owner, value in rows
        )
        lines = (",".join([str(n), *values]) for n, values in enumerate(row_values))
        path.write_text("\n".join([names, *lines]) + "\n")
    else:
        path.write_text(
            "".join(
                f'{{"n": {n}' + (f', "v{owner}": {value}' if value else "") + "}\n"
                for n, (owner, value) in enumerate(rows)
            )
        )
    return path


@pytest.fixture(scope="module")
def differing_records(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Formats], dict[str, set[int]]]:
    """The numbers of the different records of each case of two formats, which are compared once."""

    @cache
    def differing_in(formats: Formats) -> dict[str, set[int]]:
        cases, folder = of_formats(formats), tmp_path_factory.mktemp("fields")
        expected = write(folder / f"e.{formats[0]}", [case.expected for case in cases.values()])
        actual = write(folder / f"a.{formats[1]}", [case.actual for case in cases.values()])
        names = ",".join(["n", *(f"v{at}" for at in range(len(cases)))])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(examples, "MAX_EXAMPLES", 1000)
            result = comparison_of(spark, expected, actual, names)
        lost, phantoms = (
            {int(f.detail["n"]) for f in result.findings if f.what == what}
            for what in ("lost", "phantom")
        )
        # A different value is one lost record and one phantom.
        assert lost == phantoms
        assert len(lost) == result.counts["lost"]
        differing, first = {}, 0
        for name, case in cases.items():
            size = len(case.expected.values)
            differing[name] = {n - first for n in lost if first <= n < first + size}
            first += size
        return differing

    return differing_in


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_exactly_the_different_values_differ(
    differing_records: Callable[[Formats], dict[str, set[int]]], name: str
) -> None:
    case = CASES[name]

    assert differing_records((case.expected.format, case.actual.format))[name] == case.differ


@pytest.mark.nightly
def test_computed_values_of_several_kinds_are_compared_with_csv(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = write(tmp_path / "e.json", [SEVERAL])
    actual = write(tmp_path / "a.csv", [csv_field("7", "7", "1.5", "true", "x", "", "8")])

    result = comparison_of(spark, expected, actual, "n, coalesce(v0, v0)", actual_key="n, v0")

    assert (result.counts["lost"], result.counts["phantom"]) == (1, 1)


def test_nanoseconds_within_a_microsecond_are_no_times(spark: SparkSession, tmp_path: Path) -> None:
    utc = write(tmp_path / "utc.parquet", [parquet(pyarrow.timestamp("us", "UTC"), *NAIVE)])
    finer = write(tmp_path / "finer.parquet", [FINER])

    with pytest.raises(BadInput, match=r"timestamp on the expected side and bigint"):
        comparison_of(spark, utc, finer, "n,v0")


@pytest.mark.nightly
def test_json_of_another_kind_differs_and_a_hint_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = write(tmp_path / "e.json", [json_field('"7"')])
    actual = write(tmp_path / "a.json", [json_field("7")])

    result = comparison_of(spark, expected, actual, "v0")

    assert (result.counts["lost"], result.counts["phantom"]) == (1, 1)
    assert "CAST" in result.notes[0]


def test_declared_types_of_different_kinds_cannot_be_compared(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = write(tmp_path / "e.parquet", [parquet(pyarrow.string(), "7")])
    actual = write(tmp_path / "a.parquet", [parquet(pyarrow.int64(), 7)])

    with pytest.raises(BadInput, match=r"`v0` cannot be compared: it is string .* bigint .* CAST"):
        comparison_of(spark, expected, actual, "v0")
    assert comparison_of(spark, expected, actual, "v0", actual_key="string(v0)").counts["lost"] == 0


@pytest.mark.nightly
def test_a_null_key_is_not_a_malformed_record(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('{"v": null}\n{"v": 1}\n')
    (tmp_path / "a.json").write_text('{"v": 1}\nbroken\n')

    result = comparison_of(spark, tmp_path / "e.json", tmp_path / "a.json", "v")

    assert (result.counts["lost"], result.counts["phantom"]) == (1, 1)


@pytest.mark.nightly
def test_a_field_within_a_value_that_is_an_object_in_some_records_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = ['{"n": 1, "p": {"a": 1}}', '{"n": 2, "p": "text"}', '{"n": 3}', '{"n": 4, "p": {}}']
    (tmp_path / "e.json").write_text("\n".join(lines))
    (tmp_path / "a.json").write_text("\n".join([lines[0].replace("1}}", "2}}"), *lines[1:]]))

    result = comparison_of(spark, tmp_path / "e.json", tmp_path / "a.json", "n", compare="p.a")

    assert (result.counts["changed"], result.counts["lost"]) == (1, 0)
    (finding,) = result.findings
    assert (finding.detail["sent"], finding.detail["seen"]) == ([{"p.a": 1}], [{"p.a": 2}])


def test_nested_fields_and_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('{"a b": {"c.d": 1}, "ID": 1, "id": 2}\n')
    (tmp_path / "a.json").write_text('{"a b": {"c.d": 2}, "ID": 1, "id": 3}\n')
    both = tmp_path / "e.json", tmp_path / "a.json"

    (finding,) = comparison_of(
        spark, *both, "ID", compare="`a b`.`c.d`, concat(ID, ',', 'x'), id"
    ).findings

    assert finding.what == "changed"
    assert finding.detail["sent"] == [{"`a b`.`c.d`": 1, "concat(ID, ',', 'x')": "1,x", "id": 2}]
    assert finding.detail["seen"] == [{"`a b`.`c.d`": 2, "concat(ID, ',', 'x')": "1,x", "id": 3}]

    odd = tmp_path / "odd.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a`b": [1], "c.d": [2], "_key": [3]}), odd)
    assert comparison_of(spark, odd, odd, "`a``b`, `c.d`, _key").counts["lost"] == 0


@pytest.mark.nightly
def test_a_field_that_is_null_in_every_object_is_null_in_a_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "e.json").write_text('{"o": {"a": 1, "b": null}}\n{"o": {"a": 2, "b": null}}\n')
    (tmp_path / "a.json").write_text('{"o": {"a": 1, "b": null}}\n{"o": {"a": 3, "b": null}}\n')
    both = tmp_path / "e.json", tmp_path / "a.json"

    counts = comparison_of(spark, *both, "o.a, o.b").counts

    assert (counts["expected"], counts["lost"], counts["phantom"]) == (2, 1, 1)
