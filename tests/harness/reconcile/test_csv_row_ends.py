"""Line breaks within quotes of CSV are read as they stand in the file, whatever ends its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.formats.csv import Csv
from streamquake.harness.reconcile.reading.partitions import Partitions
from streamquake.topologies.problems import BadInput

VALUES = ("a\nb", "a\r\nb", "a\rb", "\n", "\r\n", "\r", "x\r", "x\r\n", "\r\r\n", "\n\r", 'q"\r\n"')


def quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def read(spark: SparkSession, *paths: Path) -> list[tuple[str, ...]]:
    """The records; a record that cannot be read fails the test."""
    table = Csv().read(spark, [str(path) for path in paths], frozenset(), Partitions())
    rows = table.frame.collect()
    assert not any(row["__malformed"] for row in rows)
    return [tuple(row[name] for name in table.columns) for row in rows]


@pytest.mark.nightly
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_breaks_within_quotes_are_preserved(
    spark: SparkSession, tmp_path: Path, end: str, closed: bool
) -> None:
    records = [(str(at), value, "z") for at, value in enumerate(VALUES)]
    records += [(str(at), "u", value) for at, value in enumerate(VALUES, 100)]
    lines = [f"{at},{quoted(one)},{quoted(two)}" for at, one, two in records]
    # Also without quotes: nothing but the row end is removed.
    lines.append("plain,one,two")
    path = tmp_path / "a.csv"
    path.write_bytes((end.join(["id,v,w", *lines]) + end * closed).encode())

    assert read(spark, path) == [*records, ("plain", "one", "two")]


@pytest.mark.nightly_after(3)
@pytest.mark.parametrize(
    "text",
    [
        'id,v\r\n1,"a\nb"\r\n2,c\n',
        'id,v\r\n1,"a\nb"\r\n2,c\n3,d\r\n',
        'id,v\n1,"a\nb"\r\n2,c\r\n3,d\n',
        'id,v\n1,"a\nb"\n2,c\r',
        'id,v\r1,"a\nb"\r2,c\r',
        # A quote within a field does not open one, so what follows is not within quotes.
        'id,v\n1,5" pipe\n2,b\r\n',
        'id,v\r\n1,5" pipe\r\n2,b\n3,c\r\n',
        'id,v\n1, "x\n2,b\r\n',
        'id,v\n1,"a\nb"\n2,5" pipe\n3,b\r\n',
    ],
)
def test_rows_that_end_in_two_ways_are_rejected(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())

    with pytest.raises(BadInput, match="all rows of a side must end alike, in LF or in CRLF"):
        read(spark, tmp_path / "a.csv")


def test_files_whose_rows_end_differently_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    one, other = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_bytes(b'id,v\r\n1,"a\nb"\r\n')
    other.write_bytes(b"id,v\n2,c\n")

    with pytest.raises(BadInput, match=r"b\.csv: quoted fields span lines"):
        read(spark, one, other)


def test_without_quoted_line_breaks_rows_may_end_in_any_way(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_bytes(b'id,v\r\n1,"a"\n2,b\r3,c\r\n')

    assert read(spark, tmp_path / "a.csv") == [("1", "a"), ("2", "b"), ("3", "c")]


@pytest.mark.nightly
def test_a_line_of_blanks_is_no_record_or_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,v\n1,a\n \t\n2,b\n")
    assert read(spark, path) == [("1", "a"), ("2", "b")]

    path.write_bytes(b'id,v\n1,"a\n \nb"\n')
    assert read(spark, path) == [("1", "a\n \nb")]

    path.write_bytes(b'id,v\n1,"a\nb"\n \t\n2,b\n')
    with pytest.raises(BadInput, match="a line of blanks would be a record"):
        read(spark, path)


def test_a_quote_within_a_field_is_a_character_of_it(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,v\n1,5" pipe\n2,"a\nb"\n3,"c,"\n')
    assert read(spark, path) == [("1", '5" pipe'), ("2", "a\nb"), ("3", "c,")]

    path.write_bytes(b'id,v\n1,5" pipe\n \n2,b\n')
    with pytest.raises(BadInput, match="a line of blanks would be a record"):
        read(spark, path)
