"""Reading a folder of JSON lines or Parquet files into Parquet.

Files whose names begin with a dot or an underscore are left out: that is how Flink marks what is
in progress or pending, and Spark what is no data. Where Spark's file sink has a log of its own,
only the files that it names are read. Columns: value (the line; for Parquet files the
row as JSON), file (relative to the folder), position (grows with the place in the file).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.spark_sink_log import FOLDER, uncommitted
from streamquake.harness.reconcile.stored import Stored

FILE_PLACE = ("_file", "_position")
HIDDEN = (".", "_")
PARQUET_MAGIC = b"PAR1"
BLOCK_BITS = 28
"""Spark reads a file in blocks of less than 2**28 bytes, so fewer lines than that in each."""


def read_files(spark: SparkSession, folder: Path, *, into: Stored, source: str) -> None:
    """Read what stands in a folder of this host; `source` says where it was copied from."""
    folder = folder.resolve()
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path: path.relative_to(folder).as_posix() for path in found}
    written = [path for path in found if FOLDER not in path.relative_to(folder).parts]
    left_out = uncommitted(folder, names.values())
    visible = [
        path
        for path in written
        if not _hidden(path.relative_to(folder)) and names[path] not in left_out
    ]
    parquet = [path for path in visible if _is_parquet(path)]
    lines = [path for path in visible if path not in set(parquet)]
    _lines(spark, lines, folder).write.parquet(str(into.part("lines")))
    if parquet:
        _rows(spark, parquet, folder).write.parquet(str(into.part("rows")))
    into.finish(
        {
            "kind": "files",
            "source": source,
            "records": into.frame(spark).count(),
            "files": len(visible),
            "pending_files": len(written) - len(visible),
        }
    )


def _hidden(path: Path) -> bool:
    return any(part.startswith(HIDDEN) for part in path.parts)


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _lines(spark: SparkSession, paths: Iterable[Path], folder: Path) -> DataFrame:
    names = [str(path) for path in paths]
    if not names:
        return spark.createDataFrame([], "value string, file string, position bigint")
    return _within(spark.read.text(names), folder).select("value", "file", "position")


def _rows(spark: SparkSession, paths: Iterable[Path], folder: Path) -> DataFrame:
    rows = spark.read.parquet(*(str(path) for path in paths))
    columns = rows.columns
    value = F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})
    return _within(rows, folder).select(value.alias("value"), "file", "position")


def _within(frame: DataFrame, folder: Path) -> DataFrame:
    """With `file`, as it is called within the folder, and `position`."""
    file = F.substring("_file", len(f"{folder}/") + 1, 1 << 30)
    return placed(frame).withColumns({"file": file, "position": F.col("_position")})


def placed(frame: DataFrame, *, numbered: bool = False) -> DataFrame:
    """A frame read from files with `FILE_PLACE`: the file's path, and a number that grows with the
    place in it: the row's, where the format is `numbered` as Parquet is, or else the block's first
    byte and then the record's turn within the task."""
    if numbered:
        # A function of the row alone, which is made for those rows only that are looked at.
        return frame.withColumns({"_file": _absolute(), "_position": F.col("_metadata.row_index")})
    turn = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << BLOCK_BITS) - 1))
    block = F.shiftleft(F.col("_metadata.file_block_start"), BLOCK_BITS)
    return frame.withColumns({"_file": _absolute(), "_position": block + turn})


def _absolute() -> Column:
    return F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "/")
