"""Small files of lines are stored as Spark would store them, or left to Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reading import files, small_files
from streamquake.harness.reconcile.reading.small_files import copy_lines
from streamquake.harness.reconcile.reading.stored_output import StoredOutput

CONTENTS = [
    b"",
    b"\n",
    b"\n\n",
    b'{"id": 1}',
    b'{"id": 1}\n{"id": 2}\n',
    b"\n{}\n\n{}",
    b"not \xff\xfe UTF-8\n\xed\xa0\x80",
    "é\u2028😀\x00\x0b\x0c\x85 \n".encode(),
    b"one\n\xef\xbb\xbftwo",
]
LEFT_TO_SPARK = [b"a\r\nb\r", b"\r", b"\xef\xbb\xbf{}\n"]


def rows_of(stored: StoredOutput, spark: SparkSession) -> list[tuple[object, ...]]:
    frame = stored.frame(spark).selectExpr("file", "position", "hex(value) AS value")
    return [(row.file, row.value) for row in frame.orderBy("file", "position").collect()]


@pytest.mark.parametrize("with_others", [False, True])
def test_lines_are_stored_as_spark_stores_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_others: bool
) -> None:
    folder = tmp_path / "out"
    (folder / "2026-01-01").mkdir(parents=True)
    for number, text in enumerate(CONTENTS + LEFT_TO_SPARK * with_others):
        (folder / "2026-01-01" / f"part-a1b2-{number}").write_bytes(text)
    quick, slow = (StoredOutput(path=tmp_path / name) for name in ("quick", "slow"))
    files.read_files(spark, folder, into=quick, source="/out")
    monkeypatch.setattr(files, "copy_lines", lambda names, into: False)
    files.read_files(spark, folder, into=slow, source="/out")

    assert rows_of(quick, spark) == rows_of(slow, spark)
    assert rows_of(quick, spark)
    facts = [{**stored.facts(), "files": None} for stored in (quick, slow)]
    assert facts[0] == facts[1]
    assert quick.part("json").joinpath("part-0.parquet").exists() is not with_others


def copied(tmp_path: Path, name: str, text: bytes) -> bool:
    path = tmp_path / "source"
    path.write_bytes(text)
    plain = tmp_path / "plain"
    plain.write_bytes(b"{}\n")
    done = copy_lines({plain: "part-0", path: name}, tmp_path / "into")
    assert (tmp_path / "into").exists() is done
    return done


@pytest.mark.parametrize("text", CONTENTS)
def test_plain_lines_are_copied(tmp_path: Path, text: bytes) -> None:
    assert copied(tmp_path, "2026-01-01--07/part-3f2a-0_7.json", text)
    table = pq.read_table(tmp_path / "into").filter(
        pq.read_table(tmp_path / "into")["file"].to_numpy(zero_copy_only=False) != "part-0"
    )
    lines = table["value"].cast("binary").to_pylist()
    assert b"\n".join(lines) == text.removesuffix(b"\n") or not lines
    assert table["position"].to_pylist() == list(range(len(lines)))


@pytest.mark.parametrize("text", LEFT_TO_SPARK)
def test_ends_and_marks_that_spark_drops_are_left_to_it(tmp_path: Path, text: bytes) -> None:
    assert not copied(tmp_path, "part-0-1", text)


@pytest.mark.parametrize("name", ["p.json.gz", "p.zst", "a b", "p%20", "p:1", "é.json", "p?"])
def test_compressed_files_and_other_names_are_left_to_spark(tmp_path: Path, name: str) -> None:
    assert not copied(tmp_path, name, b"{}\n")


def test_large_files_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_files, "MAX_BYTES", 10)
    assert copied(tmp_path, "part-1", b"1234567")
    monkeypatch.setattr(small_files, "MAX_BYTES", 9)
    assert not copied(tmp_path / "into", "part-1", b"1234567")


def test_no_files_are_left_to_spark(tmp_path: Path) -> None:
    assert not copy_lines({}, tmp_path / "into")
