"""The files of a side, and the detection of their format."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.listing import list_files
from streamquake.harness.reconcile.reading.partitions import (
    NULL,
    ODD_NUMBER,
    Partitions,
    partitions_of,
)
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import FORMATS, comparison_of, nonzero_counts, write_rows

ROWS = [{"id": n, "text": f"t{n}"} for n in range(6)]


def test_pending_and_in_progress_files_of_flink_are_ignored(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Names as Flink's file sink chooses them: the suffix of a part file shows no format."""
    folder = tmp_path / "out"
    write_rows(folder / "2026-01-01" / "x.json", ROWS[:3]).rename(
        folder / "2026-01-01" / "part-7-0"
    )
    write_rows(folder / "y.json", ROWS[3:]).rename(folder / "part-7-1")
    write_rows(folder / "z.json", ROWS).rename(folder / ".part-7-2.inprogress.77")
    (folder / "_SUCCESS").write_text("")

    result = comparison_of(spark, write_rows(tmp_path / "e.parquet", ROWS), folder, "id, text")

    assert (result.counts["lost"], result.counts["actual"]) == (0, 6)
    assert "1 pending or in-progress files were ignored" in result.notes[0]


@pytest.mark.nightly
def test_a_note_about_ignored_files_names_all_folders_of_the_side(
    spark: SparkSession, tmp_path: Path
) -> None:
    one, other = (str(write_rows(tmp_path / name / "p.json", ROWS).parent) for name in "ab")
    (tmp_path / "a" / ".p.inprogress").write_text("")

    result = comparison_of(spark, tmp_path / "a", (one, other))

    assert result.notes[-1] == f"{one}, {other}: 1 pending or in-progress files were ignored"


def test_ignored_files_are_counted_both_ways(spark: SparkSession, tmp_path: Path) -> None:
    """Files of a committer's attempts, and others in hidden folders; marks are not counted."""
    folder = tmp_path / "out"
    expected = write_rows(folder / "part-0.json", ROWS)
    for name in ("_temporary/0/part-1.json", "_more/part-2.json", "k=1/_part-3.json", ".p.pending"):
        write_rows(folder / "p.json", ROWS).rename(written := folder / "x")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        written.rename(folder / name)
    for name in ("_SUCCESS", ".part-0.json.crc", "_metadata", "_more/_SUCCESS"):
        (folder / name).write_text("no record")

    for some in (folder, f"{folder}/*"):
        result = comparison_of(spark, expected, some)
        assert (result.counts["actual"], len(result.notes)) == (len(ROWS), 2)
        assert "1 pending or in-progress files were ignored" in result.notes[0]
        assert "3 files with hidden names or in hidden folders were ignored" in result.notes[1]
    stored = StoredOutput(path=tmp_path / "stored")
    read_files(spark, folder, into=stored, source="/out")
    assert (stored.rows(), stored.facts()["pending_files"]) == (len(ROWS), 4)


@pytest.mark.nightly
def test_a_partition_folder_may_begin_with_an_underscore(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_rows(tmp_path / "out" / "_k=7" / "part-0.json", ROWS)
    expected = write_rows(tmp_path / "e.json", [{**row, "_k": 7} for row in ROWS])

    result = comparison_of(spark, expected, tmp_path / "out", "id, _k")

    assert (result.counts["lost"], result.counts["phantom"], result.notes) == (0, 0, ())
    stored = StoredOutput(path=tmp_path / "stored")
    read_files(spark, tmp_path / "out", into=stored, source="/out")
    assert stored.frame(spark).select("folders._k").distinct().collect() == [(7,)]


def test_files_that_sparks_sink_has_not_committed_are_ignored(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    for change in range(6):
        write_rows(folder / f"part-{change}.json", ROWS[change : change + 1])
    write_rows(folder / "part-9.json", ROWS)
    log = folder / "_spark_metadata"
    log.mkdir()

    def batch(*names: str) -> str:
        entries = ({"path": f"file:///elsewhere/out/{name}", "action": "add"} for name in names)
        return "v1\n" + "\n".join(map(json.dumps, entries))

    (log / "0").write_text(batch("part-9.json"))  # before the compaction: superseded
    (log / "1.compact").write_text(batch("part-0.json", "part-1.json"))
    (log / "2").write_text(batch("part-2.json", "part-3.json", "part-4.json"))

    result = comparison_of(spark, write_rows(tmp_path / "e.json", ROWS), folder)

    assert (result.counts["lost"], result.counts["actual"]) == (1, 5)
    assert "2 files that the sink's log has not committed" in result.notes[0]

    (log / "3").write_text(batch("part-77.json"))
    with pytest.raises(BadInput, match=r"committed file that does not exist: .*part-77"):
        comparison_of(spark, tmp_path / "e.json", folder)


def test_an_empty_log_of_sparks_sink_has_committed_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The sink creates the folder before its first batch."""
    folder = write_rows(tmp_path / "out" / "part-0.json", ROWS).parent
    expected = write_rows(tmp_path / "e.json", ROWS)
    assert comparison_of(spark, expected, folder).counts["lost"] == 0
    (folder / "_spark_metadata").mkdir()
    with pytest.raises(BadInput, match=r"found none \(1 uncommitted ignored\)"):
        comparison_of(spark, expected, folder)


@pytest.mark.nightly
def test_a_link_to_the_folder_itself_repeats_no_file(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "out" / "part-0.json", ROWS).parent
    (folder / "again").symlink_to(folder)
    result = comparison_of(spark, write_rows(tmp_path / "e.json", ROWS), (str(folder), str(folder)))
    assert (result.counts["lost"], result.counts["duplicated"]) == (0, 0)
    assert result.counts["actual"] == len(ROWS)


def test_empty_files_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "out" / "part-0.json", ROWS).parent
    (folder / "part-1.json").touch()
    result = comparison_of(spark, write_rows(tmp_path / "e.json", ROWS), folder)
    assert result.counts["lost"] == 0
    assert result.notes[0] == f"{folder}: 1 files are empty"


def test_patterns_odd_paths_and_compressed_files(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a folder [1]"
    write_rows(folder / "one.json", ROWS[:3])
    with gzip.open(folder / "two.json.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in ROWS[3:])
    (folder / "other.txt").write_text("no record\n")

    result = comparison_of(
        spark, write_rows(tmp_path / "e.csv", ROWS), f"{tmp_path}/a*/*.json*", "id, text"
    )

    assert (result.counts["lost"], result.counts["phantom"]) == (0, 0)
    assert comparison_of(spark, folder / "one.json", folder / "one.json").counts["lost"] == 0


@pytest.mark.parametrize("name", ["none", "none*.json"])
def test_a_path_that_no_file_has_is_rejected(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Paths on HDFS are first looked up when they are listed."""
    with pytest.raises(BadInput, match=r"none.*: no such file or folder, and no file matches"):
        list_files(spark, [f"file:{tmp_path}/{name}"])


def test_files_of_two_formats_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "a" / "one.json", ROWS)
    write_rows(tmp_path / "a" / "two.parquet", ROWS)

    with pytest.raises(BadInput, match=r"must be of one format: .* is json, .* is parquet"):
        comparison_of(spark, tmp_path / "a", tmp_path / "a")


@pytest.mark.nightly
def test_a_format_can_be_given(spark: SparkSession, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "e.csv", ROWS).rename(tmp_path / "data")

    assert comparison_of(spark, path, path, format="csv").counts["lost"] == 0


def test_csv_fields_may_span_lines_and_contain_quotes(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"id": 1, "text": 'two\nlines, "quoted"'}, {"id": 2, "text": "a\\b "}]

    result = comparison_of(
        spark,
        write_rows(tmp_path / "e.json", rows),
        write_rows(tmp_path / "a.csv", rows),
        "id, text",
    )

    assert (result.counts["lost"], result.counts["phantom"]) == (0, 0)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("other", "fields"),
    [
        ("text,id\nx,1\n", "expected id, text, got text, id"),
        ("id\n1\n", "expected those of the first file, got others"),
    ],
)
def test_csv_files_must_name_the_same_fields(
    spark: SparkSession, tmp_path: Path, other: str, fields: str
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.csv").write_text("id,text\n1,x\n")
    (tmp_path / "a" / "two.csv").write_text(other)

    with pytest.raises(BadInput, match=rf"two\.csv: .* the same fields .*: {fields}"):
        comparison_of(spark, tmp_path / "a", tmp_path / "a")


@pytest.mark.parametrize("header", [",n,n2", '"",n,n2'])
def test_a_csv_field_must_have_a_name(spark: SparkSession, tmp_path: Path, header: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n0,1,2\n")

    with pytest.raises(BadInput, match=r'a\.csv: .* a name for each field.* got "", n, n2'):
        comparison_of(spark, tmp_path / "a.csv", tmp_path / "a.csv", "n")


@pytest.mark.nightly
@pytest.mark.parametrize("blank", ["a.csv", "z.csv"])
def test_a_csv_file_of_blank_lines_has_no_records(
    spark: SparkSession, tmp_path: Path, blank: str
) -> None:
    for side in ("e", "a"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "b.csv").write_text("n,v\n1,a\n")
    (tmp_path / "a" / blank).write_text("\n\n")
    result = comparison_of(spark, tmp_path / "e", tmp_path / "a", "n")
    assert (result.outcome, result.counts["actual"]) == (Outcome.HELD, 1)


def test_parquet_files_with_different_columns_are_read_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_rows(tmp_path / "a" / "one.parquet", [{"id": 1}])
    write_rows(tmp_path / "a" / "two.parquet", [{"new": "x", "id": 2}])
    expected = write_rows(tmp_path / "e.parquet", [{"id": 1, "new": None}, {"id": 2, "new": "x"}])

    assert comparison_of(spark, expected, tmp_path / "a", "id, new").counts["lost"] == 0


@pytest.mark.nightly
def test_numbers_of_two_widths_are_one_column(spark: SparkSession, tmp_path: Path) -> None:
    """One file has 32-bit numbers, the other 64-bit ones and one more field."""
    (tmp_path / "a").mkdir()
    for name, whole, fraction in (
        ("one", pyarrow.int32(), pyarrow.float32()),
        ("two", pyarrow.int64(), pyarrow.float64()),
    ):
        ids = pyarrow.array([1, 2] if name == "one" else [2**40], whole)
        halves = pyarrow.array([0.5] * len(ids), fraction)
        columns = {"id": ids, "half": halves} | ({"new": halves} if name == "two" else {})
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a" / f"{name}.parquet")
    rows = [{"id": number, "half": 0.5, "new": None} for number in (1, 2)]
    expected = write_rows(tmp_path / "e.json", [*rows, {"id": 2**40, "half": 0.5, "new": 0.5}])

    result = comparison_of(spark, expected, tmp_path / "a", "id", compare="half, new")

    assert nonzero_counts(result) == {"reordered": None}


def write_in_partition_folders(folder: Path, kind: str) -> Path:
    """Write two records in each of two partition folders of a day and an hour."""
    for day, hour in (("2026-01-02", "07"), ("2026-01-03", "11")):
        write_rows(folder / f"day={day}" / f"hour={hour}" / f"p.{kind}", [{"id": 1}, {"id": 2}])
    return folder


def test_partition_folders_give_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Folders as Hive, Spark and DuckDB write them."""
    rows = [
        {"id": number, "day": f"2026-01-0{day}", "hour": hour}
        for number in (1, 2)
        for day, hour in ((2, 7), (3, 11))
    ]
    whole = write_rows(tmp_path / "e.json", rows)
    lines, fields, columns = (write_in_partition_folders(tmp_path / kind, kind) for kind in FORMATS)

    for expected, actual in ((whole, columns), (lines, fields)):
        result = comparison_of(spark, expected, actual, "id, day", compare="hour")
        assert (result.counts["actual"], nonzero_counts(result)) == (4, {"reordered": None})


def test_partition_folders_that_differ_between_files_give_no_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_rows(tmp_path / "out" / "k=1" / "one.parquet", [{"id": 1}])
    write_rows(tmp_path / "out" / "two.parquet", [{"id": 2}])
    expected = write_rows(tmp_path / "e.json", [{"id": 1}, {"id": 2}])

    result = comparison_of(spark, expected, tmp_path / "out")

    assert (result.counts["actual"], result.counts["lost"]) == (2, 0)
    assert "not all in the same NAME=VALUE folders" in result.notes[0]


@pytest.mark.parametrize(
    ("files", "base", "names"),
    [
        ([("/o/a=1/f", "/o/"), ("/o/a=2/f", "/o/")], "/o", ("a",)),
        ([("/o/x/a%20b=1/c=2/sub/f", "/o/")], "/o/x", ("a b", "c")),
        ([("/o/a=1/c=/f", "/o/")], "", ()),
        ([("/o/a=1/=2/f", "/o/")], "", ()),
        ([("/o/a=1d/f", "/o/"), ("/o/a=b/f", "/o/")], "/o", ("a",)),
        ([(f"/o/a={n}/f", "/o/") for n in ("-1", "07", "1.5e3", NULL)], "/o", ("a",)),
        ([(f"/o/a={n}/f", "/o/") for n in ("1.2.3", "0.10000000000000001")], "/o", ("a",)),
        ([(f"/o/a={n}/f", "/o/") for n in ("9" * 38, "1e37", "1e300", "0.1")], "/o", ("a",)),
        ([("/o/a=1/f", "/o/a=1/")], "", ()),
        ([("/o/a=1/f", "")], "", ()),
        ([("/o/f", "/o/")], "", ()),
    ],
)
def test_which_folders_give_columns(
    files: list[tuple[str, str]], base: str, names: tuple[str, ...]
) -> None:
    assert partitions_of(files) == Partitions(base=base, names=names)


@pytest.mark.parametrize(
    "odd",
    [
        *("1d", "2F", "0x8p-3", " 1", "1%20", "1%01", "１", "NaN", "-Infinity"),
        *("0.10000000000000001", "12345678901234567890.5", f"1{'0' * 37}1", "1e400", "1e-400"),
        "1e99999999999999999999",
    ],
)
def test_a_folder_that_spark_reads_as_a_number_gives_no_column(odd: str) -> None:
    partitions = partitions_of([("/o/a=1/f", "/o/"), (f"/o/a={odd}/f", "/o/")])

    assert partitions == Partitions(note=ODD_NUMBER.format(repr(unquote(odd))))


@pytest.mark.nightly
def test_folders_of_different_texts_are_not_read_as_one_number(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark reads both `1d` and `1f` as 1."""
    write_rows(tmp_path / "out" / "k=1d" / "one.json", [{"id": 1}])
    write_rows(tmp_path / "out" / "k=1f" / "two.json", [{"id": 2}])
    expected = write_rows(tmp_path / "e.json", [{"id": 1, "k": 1}, {"id": 2, "k": 1}])

    with pytest.raises(BadInput, match=r"`k` is not a column of the actual side.*reads '1d' as"):
        comparison_of(spark, expected, tmp_path / "out", "id, k")
    assert (
        "Spark reads '1d' as a number" in comparison_of(spark, expected, tmp_path / "out").notes[0]
    )


@pytest.mark.parametrize(
    "rows",
    [
        '1,"a" \n',
        '1,"a"\t\n',
        '"1" ,a\n',
        '1,"a ""b"" , c" \n',
        '1,"a\nb" \n',
        '1,"a\nb"\n"2" ,c\n',
    ],
)
def test_blanks_after_a_closing_quote_are_rejected(
    spark: SparkSession, tmp_path: Path, rows: str
) -> None:
    """Spark reads `"a" ` as `a`."""
    (tmp_path / "e.csv").write_text(f"id,v\n{rows}")

    with pytest.raises(
        BadInput, match=r"e\.csv: blanks between a closing quote and the next comma"
    ):
        comparison_of(spark, tmp_path / "e.csv", tmp_path / "e.csv", "id, v")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "rows", ['1,"a "" , b"\n', '1,"a "\n', '1, "\n', '1,"a""b" "c"\n', '1," ""a"" "\n', "1, \n"]
)
def test_blanks_within_quotes_or_without_any_are_text(
    spark: SparkSession, tmp_path: Path, rows: str
) -> None:
    (tmp_path / "e.csv").write_text(f"id,v\n{rows}")

    assert (
        comparison_of(spark, tmp_path / "e.csv", tmp_path / "e.csv", "id, v").counts["actual"] == 1
    )


@pytest.mark.nightly
def test_a_csv_field_may_have_the_name_of_sparks_metadata(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "e.csv").write_text("id,_metadata\n1,x\n")
    (tmp_path / "a.csv").write_text("id,_metadata\n1,y\n")

    result = comparison_of(spark, tmp_path / "e.csv", tmp_path / "a.csv", "id", compare="_metadata")

    assert result.counts["changed"] == 1
    assert result.findings[0].where == f"file {tmp_path}/a.csv, position 0"


def test_csv_that_is_not_utf_8_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,text\n1,é\n".encode("latin-1"))

    with pytest.raises(BadInput, match=r"a\.csv: expected text in UTF-8"):
        comparison_of(spark, tmp_path / "a.csv", tmp_path / "a.csv")


def test_an_unsupported_type_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    table = pyarrow.table({"id": [1], "v": pyarrow.array([1], pyarrow.time32("ms"))})
    pyarrow.parquet.write_table(table, tmp_path / "e.parquet")

    with pytest.raises(BadInput, match=r"Spark cannot read a column of this type: .*TIME\(MILLIS"):
        comparison_of(spark, tmp_path / "e.parquet", tmp_path / "e.parquet")


def test_a_decimal_that_is_too_long_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    long = pyarrow.array([Decimal(1)], pyarrow.decimal256(60, 2))
    for name, column in (("flat", long), ("nested", pyarrow.StructArray.from_arrays([long], "v"))):
        file = tmp_path / f"{name}.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"id": [1], "v": column}), file)

        with pytest.raises(BadInput) as rejected:
            comparison_of(spark, file, file)

        column_name = "v" if name == "flat" else "v.v"
        (problem,) = rejected.value.problems
        assert problem.file.endswith(f"/{file.name}")
        assert problem.message.startswith(
            f"Spark cannot read the type of the column `{column_name}`, DECIMAL(60,2): a decimal "
            "has at most 38 digits"
        )


def test_unreadable_parquet_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    whole = write_rows(tmp_path / "e.parquet", ROWS)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-9])
    twice = pyarrow.Table.from_arrays([pyarrow.array([1])] * 2, names=["id", "id"])
    pyarrow.parquet.write_table(twice, tmp_path / "twice.parquet")
    write_rows(tmp_path / "types" / "one.parquet", [{"id": 1}])
    write_rows(tmp_path / "types" / "two.parquet", [{"id": "1"}])

    for name, message in (
        ("cut.parquet", r"cut\.parquet: it is not a complete Parquet file"),
        ("twice.parquet", "got `id` twice"),
        ("types", 'one column, `id`, with "BIGINT" and "STRING"'),
    ):
        with pytest.raises(BadInput, match=message):
            comparison_of(spark, whole, tmp_path / name)


FOLDERS = "k0=1/c0=2/s=3/rank=4/order=5/status=6/lost=7/ok=8/hash=9/class=10/a.b=11/what=12"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["json", "text"])
def test_partition_folders_may_be_called_as_any_column(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    expected = write_rows(tmp_path / "e.json", [{"value": str(at)} for at in range(4)])
    lines = {"json": [f'{{"value": "{at}"}}' for at in (1, 2, 3, 3, 9)], "text": "12339"}[kind]
    folder = tmp_path / "out" / FOLDERS
    folder.mkdir(parents=True)
    (folder / f"part-0.{kind}").write_text("\n".join(lines))

    result = comparison_of(
        spark, expected, tmp_path / "out", "value", compare="value", actual_format=kind
    )

    assert nonzero_counts(result) == {"lost": 1, "duplicated": 1, "phantom": 1, "reordered": None}
    (doubled,) = (each for each in result.findings if each.what == "duplicated")
    assert doubled.detail["value"] == "3"
    assert doubled.where.count("k0 1, c0 2, s 3, rank 4, order 5, status 6, lost 7, ok 8") == 2
    assert "a.b 11, what 12" in doubled.where
