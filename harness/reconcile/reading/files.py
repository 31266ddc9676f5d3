"""Reads a folder of JSON lines, of Parquet or of Avro files, and stores its records as Parquet.

Files are ignored as Spark ignores them (`is_hidden`): Flink marks in-progress and pending files so,
and committers the files of attempts. Where Spark's file sink has a log, only the files in the log
are read. Columns: value (the line, or the record as JSON), record (except for lines; see
`declared.py`), file (relative to the folder), position (ascending within the file), and, for lines
in partition folders, folders (`partitions.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.format import (
    Format,
    format_by_head,
    formats,
    reject_several,
)
from streamquake.harness.reconcile.reading.hidden_files import is_hidden
from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.partitions import Partitions, partitions_of
from streamquake.harness.reconcile.reading.reading_session import reading_session
from streamquake.harness.reconcile.reading.small_files import copy_lines
from streamquake.harness.reconcile.reading.spark_sink_log import FOLDER, uncommitted_files
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.reading.table import as_json
from streamquake.harness.reconcile.values.declared import FOLDERS, stored_columns

FILE_PLACE = ("_file", "_position")
WITHOUT_RECORDS = ("_SUCCESS", "_metadata", "_common_metadata")
"""Hidden files that are marks and summaries of others."""
LINES = "json"
HEAD_BYTES = 4
BLOCK_BITS = 28
"""Spark reads a file in blocks of less than 2**28 bytes, so each has fewer lines than that."""


def read_files(
    spark: SparkSession,
    folder: Path,
    *,
    into: StoredOutput,
    source: str,
    declared_format: Format | None = None,
) -> None:
    """Read the files of a folder of this host. `source` is where they were copied from,
    `declared_format` the format in the experiment. Raises BadInput for files that cannot be read
    together."""
    folder = folder.resolve()
    all_files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path: path.relative_to(folder).as_posix() for path in all_files}
    uncommitted = uncommitted_files(folder, names.values())
    ignored = {
        path for path, name in names.items() if is_hidden(PurePath(name)) or name in uncommitted
    }
    visible = [path for path in all_files if path not in ignored]
    name = _format_of(visible, folder, source)
    if name == LINES:
        _store_lines(spark, {path: names[path] for path in visible}, folder, into.part(name))
    else:
        kind = (
            declared_format
            if declared_format is not None and declared_format.name == name
            else formats[name]()
        )
        records = _rows(
            reading_session(spark), kind, [path for path in visible if path.stat().st_size], folder
        )
        records.write.parquet(str(into.part(name)))
    into.finish(
        {
            "kind": "files",
            "source": source,
            "records": into.rows(),
            "files": len(visible),
            "pending_files": sum(may_have_records(PurePath(names[path])) for path in ignored),
        }
    )


def may_have_records(path: PurePath) -> bool:
    """Whether an ignored file may have records, so that it is counted. The log of Spark's sink,
    checksums, marks and summaries have none."""
    is_other = path.name in WITHOUT_RECORDS or path.suffix == ".crc"
    return not is_other and FOLDER not in path.parts


def _format_of(paths: Iterable[Path], folder: Path, source: str) -> str:
    """The format of some files, by their first bytes. Raises BadInput where they differ."""
    files_by_format: dict[str, Path] = {}
    for path in paths:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head:
            files_by_format.setdefault(format_by_head(head) or LINES, path.relative_to(folder))
    reject_several(files_by_format, source, "output")
    return next(iter(files_by_format), LINES)


def _store_lines(spark: SparkSession, names: Mapping[Path, str], folder: Path, part: Path) -> None:
    """Store the lines of some files (path -> name in the record), and the columns from their
    partition folders."""
    folders = _folders(names, folder)
    if folders.names or not copy_lines(names, part):
        _lines(spark, list(names), folders, folder).write.parquet(str(part))


def _lines(
    spark: SparkSession, paths: Sequence[Path], partitions: Partitions, folder: Path
) -> DataFrame:
    names = [literal_path(path) for path in paths]
    if not names:
        return spark.createDataFrame([], "value string, file string, position bigint")
    lines, folder_names = text_lines(spark, names, partitions)
    folders = [F.struct(*map(quote_name, folder_names)).alias(FOLDERS)] if folder_names else []
    return lines.select("value", *_place(folder), *folders)


def _rows(spark: SparkSession, kind: Format, paths: Sequence[Path], folder: Path) -> DataFrame:
    names = [literal_path(path) for path in paths]
    partitions = _folders(paths, folder)
    fields = kind.read(spark, names, frozenset(), partitions).columns
    # The type of a field may depend on all its values, so it is detected for requested fields only.
    table = kind.read(spark, names, frozenset(fields), partitions)
    columns = stored_columns(table, as_json(table), F.lit(True))
    return table.frame.select(*columns, *_place(folder))


def _folders(paths: Iterable[Path], folder: Path) -> Partitions:
    return partitions_of((str(path), f"{folder}/") for path in paths)


def _place(folder: Path) -> tuple[Column, Column]:
    """The columns `file`, relative to the folder, and `position`, of a frame `with_place`."""
    file = F.substring("_file", len(f"{folder}/") + 1, 1 << 30)
    return file.alias("file"), F.col("_position").alias("position")


def text_lines(
    spark: SparkSession, paths: Sequence[str], partitions: Partitions
) -> tuple[DataFrame, tuple[str, ...]]:
    """The lines of some files `with_place`, and the names of the columns from their partition
    folders, which are also in the frame. The text of a line is in `value`."""
    folders = partitions.without_conflicts(("value", *FILE_PLACE))
    lines = spark.read.options(**folders.options).text(list(paths))
    return with_place(lines), folders.names


def with_place(frame: DataFrame, *, numbered: bool = False) -> DataFrame:
    """A frame of files with the columns `FILE_PLACE`: the path of the file, and an ascending number
    of the record: that of the row, where the format has `numbered` rows (Parquet), else the first
    byte of the block and the number of the record within the task."""
    place = frame.metadataColumn("_metadata")  # not a field of the records with this name
    file = F.regexp_replace(place["file_path"], "^file:/+", "/")
    if numbered:
        # A function of the row alone, so Spark computes it only for the rows that are used.
        return frame.withColumns({"_file": file, "_position": place["row_index"]})
    number = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << BLOCK_BITS) - 1))
    block = F.shiftleft(place["file_block_start"], BLOCK_BITS)
    return frame.withColumns({"_file": file, "_position": block + number})
