"""Which files make up a side, and in which format they are."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import compared, write

ROWS = [{"id": n, "text": f"t{n}"} for n in range(6)]


def test_a_folder_without_what_flink_has_not_finished(spark: SparkSession, tmp_path: Path) -> None:
    """Names of Flink's file sink: part files have no ending that tells the format."""
    folder = tmp_path / "out"
    write(folder / "2026-01-01" / "x.json", ROWS[:3]).rename(folder / "2026-01-01" / "part-7-0")
    write(folder / "y.json", ROWS[3:]).rename(folder / "part-7-1")
    write(folder / "z.json", ROWS).rename(folder / ".part-7-2.inprogress.77")
    (folder / "_SUCCESS").write_text("")

    result = compared(spark, write(tmp_path / "e.parquet", ROWS), folder, "id, text")

    assert (result.counts["lost"], result.counts["actual"]) == (0, 6)
    assert "1 pending or in-progress files were left out" in result.notes[0]


def test_what_sparks_sink_has_not_committed_is_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    for turn in range(6):
        write(folder / f"part-{turn}.json", ROWS[turn : turn + 1])
    write(folder / "part-9.json", ROWS)
    log = folder / "_spark_metadata"
    log.mkdir()

    def batch(*names: str) -> str:
        entries = ({"path": f"file:///elsewhere/out/{name}", "action": "add"} for name in names)
        return "v1\n" + "\n".join(map(json.dumps, entries))

    (log / "0").write_text(batch("part-9.json"))  # before the compaction: superseded
    (log / "1.compact").write_text(batch("part-0.json", "part-1.json"))
    (log / "2").write_text(batch("part-2.json", "part-3.json", "part-4.json"))

    result = compared(spark, write(tmp_path / "e.json", ROWS), folder)

    assert (result.counts["lost"], result.counts["actual"]) == (1, 5)
    assert "2 files that the sink's log has not committed" in result.notes[0]

    (log / "3").write_text(batch("part-77.json"))
    with pytest.raises(BadInput, match=r"committed file that is not there: .*part-77"):
        compared(spark, tmp_path / "e.json", folder)


def test_patterns_odd_paths_and_compressed_files(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a folder [1]"
    write(folder / "one.json", ROWS[:3])
    with gzip.open(folder / "two.json.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in ROWS[3:])
    (folder / "other.txt").write_text("no record\n")

    result = compared(spark, write(tmp_path / "e.csv", ROWS), f"{tmp_path}/a*/*.json*", "id, text")

    assert (result.counts["lost"], result.counts["phantom"]) == (0, 0)
    assert compared(spark, folder / "one.json", folder / "one.json").counts["lost"] == 0


def test_files_of_two_formats_are_no_side(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a" / "one.json", ROWS)
    write(tmp_path / "a" / "two.parquet", ROWS)

    with pytest.raises(BadInput, match=r"must be of one format: .* is json, .* is parquet"):
        compared(spark, tmp_path / "a", tmp_path / "a")


def test_a_format_may_be_said(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "e.csv", ROWS).rename(tmp_path / "data")

    assert compared(spark, path, path, format="csv").counts["lost"] == 0


def test_csv_fields_go_over_lines_and_hold_quotes(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"id": 1, "text": 'two\nlines, "quoted"'}, {"id": 2, "text": "a\\b "}]

    result = compared(
        spark, write(tmp_path / "e.json", rows), write(tmp_path / "a.csv", rows), "id, text"
    )

    assert (result.counts["lost"], result.counts["phantom"]) == (0, 0)


def test_csv_files_must_name_the_same_fields(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.csv").write_text("id,text\n1,x\n")
    (tmp_path / "a" / "two.csv").write_text("text,id\nx,1\n")

    said = r"two\.csv: .* the same fields .*: expected id, text, got text, id"
    with pytest.raises(BadInput, match=said):
        compared(spark, tmp_path / "a", tmp_path / "a")


def test_parquet_files_of_two_ages_are_read_by_name(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a" / "one.parquet", [{"id": 1}])
    write(tmp_path / "a" / "two.parquet", [{"new": "x", "id": 2}])
    expected = write(tmp_path / "e.parquet", [{"id": 1, "new": None}, {"id": 2, "new": "x"}])

    assert compared(spark, expected, tmp_path / "a", "id, new").counts["lost"] == 0


def test_text_that_is_not_utf_8_is_no_csv(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,text\n1,é\n".encode("latin-1"))

    with pytest.raises(BadInput, match=r"a\.csv: expected text in UTF-8"):
        compared(spark, tmp_path / "a.csv", tmp_path / "a.csv")


def test_parquet_that_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    whole = write(tmp_path / "e.parquet", ROWS)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-9])
    twice = pyarrow.Table.from_arrays([pyarrow.array([1])] * 2, names=["id", "id"])
    pyarrow.parquet.write_table(twice, tmp_path / "twice.parquet")
    write(tmp_path / "types" / "one.parquet", [{"id": 1}])
    write(tmp_path / "types" / "two.parquet", [{"id": "1"}])

    for name, said in (
        ("cut.parquet", r"cut\.parquet: it is no Parquet file from end to end"),
        ("twice.parquet", "got `id` twice"),
        ("types", 'one column with "BIGINT" and "STRING"'),
    ):
        with pytest.raises(BadInput, match=said):
            compared(spark, whole, tmp_path / name)
