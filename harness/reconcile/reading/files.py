"""Reading a folder of JSON lines, of Parquet or of Avro files into Parquet.

Files whose names begin with a dot or an underscore are left out: that is how Flink marks what is
in progress or pending, and Spark what is no data. Where Spark's file sink has a log of its own,
only the files that it names are read. Columns: value (the line; of other files the record
as JSON, and record as `declared.py` has it), file (relative to the folder), position (grows with
the place in the file); of lines folders too, where folders name values (`partitions.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from streamquake.harness.reconcile.reading.literal_path import literal_path
from streamquake.harness.reconcile.reading.partitions import Partitions, partitions_of
from streamquake.harness.reconcile.reading.reading_session import reading_session
from streamquake.harness.reconcile.reading.spark_sink_log import FOLDER, uncommitted_files
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.reading.table import as_json
from streamquake.harness.reconcile.values.declared import FOLDERS, stored_columns

FILE_PLACE = ("_file", "_position")
HIDDEN_PREFIXES = (".", "_")
COPYING_SUFFIX = "._COPYING_"
"""How the name of a file ends that Hadoop's client has not copied whole yet."""
LINES = "json"
HEAD_BYTES = 4
BLOCK_BITS = 28
"""Spark reads a file in blocks of less than 2**28 bytes, so fewer lines than that in each."""


def read_files(
    spark: SparkSession,
    folder: Path,
    *,
    into: StoredOutput,
    source: str,
    reported: Format | None = None,
) -> None:
    """Read what stands in a folder of this host; `source` says where it was copied from, `told`
    what is known of its records. Raises BadInput for files that cannot be read together."""
    folder = folder.resolve()
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path: path.relative_to(folder).as_posix() for path in found}
    written = [path for path in found if FOLDER not in path.relative_to(folder).parts]
    left_out = uncommitted_files(folder, names.values())
    visible = [
        path
        for path in written
        if not is_hidden(path.relative_to(folder)) and names[path] not in left_out
    ]
    name = _format_of(visible, folder, source)
    if name == LINES:
        read = _lines(spark, visible, folder)
    else:
        kind = reported if reported is not None and reported.name == name else formats[name]()
        read = _rows(
            reading_session(spark), kind, [path for path in visible if path.stat().st_size], folder
        )
    read.write.parquet(str(into.part(name)))
    into.finish(
        {
            "kind": "files",
            "source": source,
            "records": into.frame(spark).count(),
            "files": len(visible),
            "pending_files": len(written) - len(visible),
        }
    )


def is_hidden(path: PurePath) -> bool:
    """Whether a file is left out by its name or that of a folder, as Spark leaves it out."""
    return any(part.startswith(HIDDEN_PREFIXES) for part in path.parts) or path.name.endswith(
        COPYING_SUFFIX
    )


def _format_of(paths: Iterable[Path], folder: Path, source: str) -> str:
    """The one format of some files, by what they begin with. Raises BadInput where they differ."""
    found: dict[str, Path] = {}
    for path in paths:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head:
            found.setdefault(format_by_head(head) or LINES, path.relative_to(folder))
    reject_several(found, source, "output")
    return next(iter(found), LINES)


def _lines(spark: SparkSession, paths: Sequence[Path], folder: Path) -> DataFrame:
    names = [literal_path(path) for path in paths]
    if not names:
        return spark.createDataFrame([], "value string, file string, position bigint")
    named = _folders(paths, folder).without(("value",))
    lines = with_place(spark.read.options(**named.options).text(names))
    folders = [F.struct(*map(quote_name, named.names)).alias(FOLDERS)] if named.names else []
    return lines.select("value", *_place(folder), *folders)


def _rows(spark: SparkSession, kind: Format, paths: Sequence[Path], folder: Path) -> DataFrame:
    names = [literal_path(path) for path in paths]
    named = _folders(paths, folder)
    fields = kind.read(spark, names, frozenset(), named).columns
    # What a field is may rest on all its values, and is found out for those that are asked for.
    table = kind.read(spark, names, frozenset(fields), named)
    columns = stored_columns(table, as_json(table), F.lit(True))
    return table.frame.select(*columns, *_place(folder))


def _folders(paths: Iterable[Path], folder: Path) -> Partitions:
    return partitions_of((str(path), f"{folder}/") for path in paths)


def _place(folder: Path) -> tuple[Column, Column]:
    """Of a frame that is `placed`: `file`, as it is called within the folder, and `position`."""
    file = F.substring("_file", len(f"{folder}/") + 1, 1 << 30)
    return file.alias("file"), F.col("_position").alias("position")


def with_place(frame: DataFrame, *, numbered: bool = False) -> DataFrame:
    """A frame read from files with `FILE_PLACE`: the file's path, and a number that grows with the
    place in it: the row's, where the format is `numbered` as Parquet is, or else the block's first
    byte and then the record's turn within the task."""
    place = frame.metadataColumn("_metadata")  # not a field of the records that is called so
    file = F.regexp_replace(place["file_path"], "^file:/+", "/")
    if numbered:
        # A function of the row alone, which is made for those rows only that are looked at.
        return frame.withColumns({"_file": file, "_position": place["row_index"]})
    change = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << BLOCK_BITS) - 1))
    block = F.shiftleft(place["file_block_start"], BLOCK_BITS)
    return frame.withColumns({"_file": file, "_position": block + change})
