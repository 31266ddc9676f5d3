"""Comparisons of any two data sets: every class in every format, and the undecided verdicts."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.comparison import COUNTS
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import FORMATS, comparison_of, nonzero_counts, write_rows
from tests.tiers import others_nightly

ROWS = [{"id": f"k{n % 3}", "seq": n, "amount": n * 7, "ack": "ok", "at": n} for n in range(1, 31)]


def planted_anomalies() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """One record of each class: (expected, actual)."""
    expected = [dict(row) for row in ROWS]
    actual = [dict(row) for row in ROWS]
    expected[20]["ack"] = "unknown"  # present
    expected[21]["ack"] = "unknown"  # absent
    expected[22]["ack"] = "fail"  # a phantom
    actual[9]["at"], actual[12]["at"] = actual[12]["at"], actual[9]["at"]  # reordered
    actual[5]["amount"] = -1  # changed
    del actual[21]
    del actual[0]  # lost
    actual.append({"id": "k9", "seq": 1, "amount": 0, "ack": "ok", "at": 100})  # never sent
    actual.append({**ROWS[2], "at": 101})  # duplicated
    actual.append({**ROWS[3], "at": 102, "amount": -2})  # duplicated and changed
    return expected, actual


@pytest.mark.parametrize("kind", others_nightly(FORMATS, ("json",)))
def test_every_class_is_found_in_every_format(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    expected, actual = planted_anomalies()

    result = comparison_of(
        spark,
        write_rows(tmp_path / f"e.{kind}", expected),
        write_rows(tmp_path / f"a.{kind}", actual),
        sequence="seq",
        compare="amount",
        order="at",
        ack="ack",
    )

    assert result.counts == {
        "expected": 27,
        "actual": 31,
        "lost": 1,
        "duplicated": 2,
        "phantom": 2,
        "changed": 2,
        "reordered": 1,
        "unknown_arrived": 1,
        "unknown_absent": 1,
        "malformed": 0,
    }
    assert result.outcome == Outcome.VIOLATED
    by_class = {finding.what: finding for finding in result.findings}
    assert set(by_class) == {
        "lost",
        "duplicated",
        "phantom",
        "phantom, though the send was refused",
        "changed",
        "reordered",
    }
    assert by_class["lost"].detail["id"] == "k1"
    reordered = by_class["reordered"].detail
    assert int(reordered["before"]) > int(reordered["seq"])
    assert f"a.{kind}" in by_class["duplicated"].where


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "other"), [("json", "csv"), ("csv", "parquet"), ("parquet", "json")]
)
def test_the_same_records_are_the_same_in_every_format(
    spark: SparkSession, tmp_path: Path, kind: str, other: str
) -> None:
    result = comparison_of(
        spark,
        write_rows(tmp_path / f"e.{kind}", ROWS),
        write_rows(tmp_path / f"a.{other}", ROWS),
        "id, seq",
        compare="amount",
        ack="ack",
        sequence="at",
    )

    assert nonzero_counts(result) == {"reordered": None}
    assert result.outcome == Outcome.HELD
    assert result.counts["expected"] == len(ROWS)
    assert set(result.counts) == set(COUNTS)


def test_classes_without_their_option_are_not_judged(spark: SparkSession, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "e.json", ROWS)

    assert nonzero_counts(comparison_of(spark, path, path, "seq")) == {
        "changed": None,
        "reordered": None,
    }


def test_a_null_order_cannot_be_judged(spark: SparkSession, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "e.json", [*ROWS, {"id": "k0", "seq": 0, "at": None}])

    result = comparison_of(spark, path, path, sequence="seq", order="at")

    assert result.counts["reordered"] is None
    assert "--order is null for 1 records" in result.notes[0]


@pytest.mark.nightly
def test_records_of_the_same_moment_are_not_reordered(spark: SparkSession, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "e.json", [{"id": "a", "seq": seq, "at": 1} for seq in (3, 1, 2)])

    assert comparison_of(spark, path, path, sequence="seq", order="at").counts["reordered"] == 0


@pytest.mark.nightly
def test_equal_numbers_of_an_order_are_one_moment(spark: SparkSession, tmp_path: Path) -> None:
    groups = (
        ["-1e20", f"-1{'0' * 20}"],
        ["-0", "0", "0e999999999", "0e-999999999", "0.000"],
        ["1e-38", f"0.{'0' * 37}10"],
        ["0.05", "5e-2", "0.5e-1", "50e-3"],
        ["5", "5e0", "0.5e1", "50e-1", f"5.{'0' * 40}", f"{'0' * 40}5"],
        ["2e50", f"2{'0' * 50}", "0.2e51"],
    )
    rows = [
        {"id": f"k{number}", "seq": -n, "at": text}
        for number, group in enumerate(groups)
        for n, text in enumerate(group)
    ]
    path = write_rows(tmp_path / "e.csv", rows)

    assert comparison_of(spark, path, path, sequence="seq", order="at").counts["reordered"] == 0
    ascending = comparison_of(spark, path, path, "seq", sequence="at", order="_position")
    assert ascending.counts["reordered"] == 0


@pytest.mark.nightly
def test_large_whole_numbers_stay_exact_beside_floating_point(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [
        {"id": "a", "seq": 2**53 + 1, "at": 1},
        {"id": "a", "seq": 2**53, "at": 2},
        {"id": "b", "seq": 0.5, "at": 3},
    ]
    path = write_rows(tmp_path / "e.json", rows)

    assert comparison_of(spark, path, path, sequence="seq", order="at").counts["reordered"] == 1


@pytest.mark.nightly
def test_text_sorts_by_its_number_or_time(spark: SparkSession, tmp_path: Path) -> None:
    """Numbers, timestamps and other texts; two texts are the same number and two the same
    timestamp."""
    second = "2026-01-01T00:00:1"
    texts = [
        "-1.5",
        "-0.5",
        "0.25",
        "3",
        "3.0",
        "3.01",
        "20",
        f"{second}0Z",
        f"{second}0+00:00",
        f"{second}0.5Z",
        f"{second}1Z",
        "x",
    ]
    rows = [{"id": "a", "at": text, "n": n} for n, text in enumerate(texts)]
    path = write_rows(tmp_path / "e.json", rows)

    assert comparison_of(spark, path, path, sequence="at", order="n").counts["reordered"] == 0
    assert comparison_of(spark, path, path, sequence="n", order="at").counts["reordered"] == 0
    descending = comparison_of(spark, path, path, sequence="at", order="-n")
    assert descending.counts["reordered"] == len(texts) - 3
    assert [finding.detail["before"] for finding in descending.findings] == [
        "x",
        f"{second}1+00:00",
        f"{second}0.500000+00:00",
        f"{second}0+00:00",
        20,
        3.01,
        3,
        0.25,
    ]


NUMBERS = (
    "-1e400",
    "-2e22",
    "-123456789.5",
    "-123456789",
    "-1e-400",
    "0e9",
    "1e-39",
    "9007199254740992",
    "9007199254740993",
    "1e16",
    "99999999999999999999999999999999999998",
    "99999999999999999999999999999999999999",
    "1e300",
    "2e300",
)


@pytest.mark.nightly
@pytest.mark.parametrize("quote", ["", '"'])
def test_numbers_of_json_are_ordered_exactly(
    spark: SparkSession, tmp_path: Path, quote: str
) -> None:
    ordered_numbers = [text for text in NUMBERS if quote or "400" not in text]
    lines = [
        f'{{"id":"a","seq":{quote}{text}{quote},"at":{at}}}'
        for at, text in enumerate(ordered_numbers)
    ]
    path = tmp_path / "e.json"
    path.write_text("\n".join(lines))

    ascending = comparison_of(spark, path, path, sequence="seq", order="at")
    descending = comparison_of(spark, path, path, sequence="seq", order="-at")

    assert ascending.counts["reordered"] == 0
    assert descending.counts["reordered"] == len(ordered_numbers) - 1
    assert [finding.detail["before"] for finding in descending.findings][:3] == [
        "2e300",
        "1e300",
        10**38 - 1,
    ]


BROKEN = {
    "json": [
        '{"id": 2',
        '{"id": 2}{"id": 3}',
        "[1]",
        "17",
        '{"id": 2}}',
        '{"id": 12345678901234567890123456789012345678901}',
    ],
    "csv": ["2", "2,3,4"],
}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", BROKEN)
def test_an_unreadable_record_is_a_phantom_or_leaves_undecided(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    good, bad, broken = tmp_path / f"good.{kind}", tmp_path / f"bad.{kind}", BROKEN[kind]
    lines = '{"id": 1}\n{"id": null}\n' if kind == "json" else "id,other\n1,1\n,1\n"
    good.write_text(lines)
    bad.write_text("".join([lines, *(f"{line}\n" for line in broken)]))

    actual = comparison_of(spark, good, bad)
    expected = comparison_of(spark, bad, good)

    count = len(broken)
    assert nonzero_counts(actual) == {
        "phantom": count,
        "malformed": count,
        "changed": None,
        "reordered": None,
    }
    assert actual.counts["actual"] == 2 + count
    assert {(finding.what, finding.detail["side"]) for finding in actual.findings} == {
        ("malformed", "actual")
    }
    assert all("bad." in finding.where for finding in actual.findings)
    shown = [finding.detail["record"] for finding in actual.findings]
    assert shown == broken
    assert expected.outcome == Outcome.UNDECIDED
    assert expected.counts["phantom"] is None
    assert "could not be read" in expected.reasons[0]


@pytest.mark.nightly
def test_a_lost_record_violates_although_an_expected_record_is_unreadable(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "e.json").write_text('{"id": 1}\n{"id": 2}\nbroken\n')
    (tmp_path / "a.json").write_text('{"id": 1}\n')

    assert (
        comparison_of(spark, tmp_path / "e.json", tmp_path / "a.json").outcome == Outcome.VIOLATED
    )


def test_two_empty_sides_prove_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text("")
    (tmp_path / "a.csv").write_text("id,seq\n")

    result = comparison_of(spark, tmp_path / "e.json", tmp_path / "a.csv")

    assert result.outcome == Outcome.UNDECIDED
    assert "no acknowledged record was expected" in result.reasons[0]


def test_an_empty_side_has_lost_everything(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("")

    result = comparison_of(spark, write_rows(tmp_path / "e.json", ROWS), tmp_path / "a.json", "seq")

    assert result.counts["lost"] == len(ROWS)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([2], {"changed": 1, "unknown_absent": 1}),
        ([1], {"unknown_absent": 1}),
        ([1, 2], {"unknown_arrived": 1}),
        ([2, 2], {"unknown_arrived": 1, "changed": 1}),
        ([], {"lost": 1, "unknown_absent": 1}),
    ],
)
def test_the_value_of_an_unknown_send_does_not_replace_that_of_an_acknowledged_one(
    spark: SparkSession, tmp_path: Path, values: list[int], classes: dict[str, int]
) -> None:
    sent = [
        {"id": "a", "v": 1, "ack": "ok"},
        {"id": "a", "v": 2, "ack": "unknown"},
        {"id": "b", "v": 0, "ack": "ok"},
    ]
    received = [{"id": "b", "v": 0}, *({"id": "a", "v": value} for value in values)]

    result = comparison_of(
        spark,
        write_rows(tmp_path / "e.json", sent),
        write_rows(tmp_path / "a.json", received),
        compare="v",
        ack="ack",
    )

    assert nonzero_counts(result) == {"reordered": None, **classes}


@pytest.mark.nightly
@pytest.mark.parametrize("fields", [450, pytest.param(2000, marks=pytest.mark.nightly)])
def test_records_with_hundreds_of_fields_are_read(
    spark: SparkSession, tmp_path: Path, fields: int
) -> None:
    wide = {"id": "a", **{f"f{at}": at for at in range(fields)}}
    rows = [{**wide, "id": f"{at}"} for at in range(3)]

    result = comparison_of(
        spark,
        write_rows(tmp_path / "e.json", rows),
        write_rows(tmp_path / "a.json", [*rows[:2], {**rows[2], "f7": 0}]),
        compare="f7",
    )

    assert nonzero_counts(result) == {"reordered": None, "changed": 1}


@pytest.mark.nightly
def test_a_hundred_fields_are_compared(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"id": "a", **{f"f{at}": at for at in range(100)}}]
    path = write_rows(tmp_path / "e.json", rows)

    result = comparison_of(spark, path, path, compare=", ".join(f"f{at}" for at in range(100)))

    assert nonzero_counts(result) == {"reordered": None}


@pytest.mark.nightly
def test_half_of_a_surrogate_pair_in_a_name_is_malformed(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "e.json"
    path.write_text('{"id":"a"}\n{"id":"b","\\ud800":1}\n')

    assert nonzero_counts(comparison_of(spark, path, path)) == {
        "reordered": None,
        "changed": None,
        "malformed": 2,
        "phantom": None,
    }


@pytest.mark.nightly
@pytest.mark.parametrize("folder", ["value=7", "Value=7", "a.b=1"])
def test_a_partition_folder_may_have_the_name_of_a_column(
    spark: SparkSession, tmp_path: Path, folder: str
) -> None:
    path = write_rows(tmp_path / "side" / folder / "e.json", [{"id": "a", "v": 1}]).parent.parent

    assert nonzero_counts(comparison_of(spark, path, path, compare="v")) == {"reordered": None}


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["_e.json", ".e.json", "e.json._COPYING_"])
def test_a_hidden_file_is_rejected_by_name_and_ignored_in_a_folder(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    path = write_rows(tmp_path / "side" / "a.json", [{"id": "a"}])
    (path.parent / name).write_text('{"id": "b"}\n')

    with pytest.raises(BadInput, match="Spark reads no file whose name"):
        comparison_of(spark, path, (str(path), str(path.parent / name)))
    for some in (path.parent, f"{path.parent}/*"):
        assert nonzero_counts(comparison_of(spark, path, some)) == {
            "reordered": None,
            "changed": None,
        }


@pytest.mark.nightly
def test_a_nul_character_before_a_doubled_quote_in_csv_is_preserved(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "e.csv").write_text('id,v\n1,"a\0""b"\n2,"a""b"\n')
    path = write_rows(tmp_path / "a.json", [{"id": "1", "v": 'a"b'}, {"id": "2", "v": 'a"b'}])

    result = comparison_of(spark, tmp_path / "e.csv", path, compare="v")

    assert nonzero_counts(result) == {"reordered": None, "changed": 1}


def test_a_csv_line_that_spark_drops_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("id\na\n \x01\n")
    (tmp_path / "a.csv").write_text("id\na\n \t\n")

    with pytest.raises(BadInput, match="control characters alone"):
        comparison_of(spark, tmp_path / "e.csv", tmp_path / "a.csv")
    assert (
        nonzero_counts(comparison_of(spark, tmp_path / "a.csv", tmp_path / "a.csv"))["reordered"]
        is None
    )


@pytest.mark.parametrize("name", ["__malformed", "__raw"])
@pytest.mark.parametrize("kind", FORMATS)
def test_fields_with_names_of_internal_columns_are_rejected(
    spark: SparkSession, tmp_path: Path, kind: str, name: str
) -> None:
    path = write_rows(tmp_path / f"e.{kind}", [{"id": "a", name: 1}])

    with pytest.raises(BadInput, match=f"expected fields of other names than `{name}`"):
        comparison_of(spark, path, path, compare=name)


@pytest.mark.parametrize(
    "name",
    ["__field_0", "__field_1", "__field_0_missing", "__hidden_0", "__corrupt", "__uncertain"],
)
def test_json_fields_with_names_of_internal_cells_are_rejected(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    path = write_rows(tmp_path / "e.json", [{"id": 1, name: 1}, {"id": "a", name: "z"}])

    with pytest.raises(BadInput, match=f"expected fields of other names than `{name}`"):
        comparison_of(spark, path, path, compare=name)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", FORMATS)
def test_a_field_with_the_name_of_a_place_is_rejected_where_it_is_named(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    expected, actual = (
        write_rows(tmp_path / f"{v}.{kind}", [{"id": "a", "_position": v, "_file": None}])
        for v in (5, 6)
    )

    for compare, order in (("_position", None), ("hash(_file)", None), ("id", "_position")):
        with pytest.raises(BadInput, match="is the place of a record, and a field of the"):
            comparison_of(spark, expected, actual, sequence="id", compare=compare, order=order)
    unnamed = comparison_of(spark, expected, actual)
    assert nonzero_counts(unnamed) == {"changed": None, "reordered": None}


@pytest.mark.nightly
def test_a_failed_comparison_keeps_nothing_for_the_next_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected, actual = tmp_path / "e.json", tmp_path / "a.json"
    write_rows(expected, [{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    write_rows(actual, [{"id": 1}, {"id": 2}])
    with pytest.raises(BadInput, match="`v` is not a column of the actual side"):
        comparison_of(spark, expected, actual, compare="v")

    write_rows(expected, [{"id": 1, "v": 1}, {"id": 2, "v": 7}])
    write_rows(actual, [{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    counts = comparison_of(spark, expected, actual, compare="v").counts

    assert counts["changed"] == 1


def test_nanoseconds_are_times_in_whichever_file_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    moment, nanos = datetime(2026, 1, 2, 3, 4, 5), pyarrow.timestamp("ns")
    side, expected = tmp_path / "side", tmp_path / "expected.parquet"
    side.mkdir()
    tables = {
        "a": {"id": [1]},
        "b": {"id": [2], "v": pyarrow.array([moment], nanos)},
        "c": {"id": [3], "v": [5000]},
    }
    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 2], "v": [None, moment]}), expected)
    for name in ("a", "b"):
        pyarrow.parquet.write_table(pyarrow.table(tables[name]), side / f"{name}.parquet")

    assert nonzero_counts(comparison_of(spark, expected, side, compare="v")) == {"reordered": None}

    pyarrow.parquet.write_table(pyarrow.table(tables["c"]), side / "c.parquet")
    with pytest.raises(BadInput, match="`v`, with timestamps of nanoseconds and with numbers"):
        comparison_of(spark, expected, side, compare="v")
