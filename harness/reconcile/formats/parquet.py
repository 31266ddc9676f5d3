"""Parquet: typed columns. Files that were written with different columns are merged by name.

Spark's timestamps have microseconds. A column of timestamps in nanoseconds becomes a timestamp
where all its values are whole microseconds (pandas writes all times in nanoseconds); otherwise it
is the whole number in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import ClassVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from streamquake.harness.reconcile.reading.files import FILE_PLACE, with_place
from streamquake.harness.reconcile.reading.format import Format, formats
from streamquake.harness.reconcile.reading.parquet_schema import (
    footer,
    read_without_metadata,
    widened_schema,
)
from streamquake.harness.reconcile.reading.partitions import Partitions
from streamquake.harness.reconcile.reading.table import Table, all_readable
from streamquake.topologies.problems import BadInput, Problem

NANOSECONDS = "TIMESTAMP(NANOS"
"""Parquet's name of timestamps in nanoseconds (LogicalTypeAnnotation)."""
OTHER_TYPES = "Failed to merge incompatible data types"
"""Spark's message where files have one column with several types."""


@formats.register
class Parquet(Format):
    """Parquet files."""

    name: ClassVar[str] = "parquet"
    extensions: ClassVar[tuple[str, ...]] = (".parquet",)
    bytes_each: ClassVar[int] = 15

    @classmethod
    def fits(cls, head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def read(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        names: frozenset[str],
        partitions: Partitions,
    ) -> Table:
        rows = _rows(spark, paths, partitions)
        fields = tuple(name for name in rows.columns if name not in FILE_PLACE)
        whole = with_place(rows.select(*map(_quoted, fields)), numbered=True)
        whole_numbers = {each.name for each in whole.schema if each.dataType == LongType()}
        nanos = sorted(_nanosecond_columns(spark, paths, names & whole_numbers))
        whole = whole.withColumns(
            {
                n: F.timestamp_micros(F.expr(f"{_quoted(n)} div 1000"))
                for n in _whole_microseconds(whole, nanos)
            }
        )
        return Table(frame=all_readable(whole), columns=fields, place=FILE_PLACE)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _rows(spark: SparkSession, paths: Sequence[str], partitions: Partitions) -> DataFrame:
    reader = spark.read.options(**partitions.options)
    try:
        # Without the merge, Spark reads all files by the columns of one file.
        return read_without_metadata(reader.option("mergeSchema", "true"), paths)
    except (PySparkException, Py4JJavaError) as error:
        if OTHER_TYPES not in str(error):
            raise
        return reader.schema(widened_schema(spark, paths)).parquet(*paths)


def _nanosecond_columns(spark: SparkSession, paths: Sequence[str], names: Set[str]) -> set[str]:
    """Those of `names` that are timestamps in nanoseconds, by the footers. Raises BadInput where
    one file has timestamps and another has numbers, since Spark reads both as numbers."""
    found: dict[str, bool] = {}
    seen: set[str] = set()
    for path in paths if names else ():
        with footer(spark, path) as message:
            if (schema := str(message)) in seen:
                continue
            seen.add(schema)
            columns = {c.getName(): str(c.getLogicalTypeAnnotation()) for c in message.getFields()}
        for name in sorted(names & set(columns)):
            nanos = NANOSECONDS in columns[name]
            if found.setdefault(name, nanos) != nanos:
                types = f"one column, `{name}`, with timestamps of nanoseconds and with numbers"
                text = f"the Parquet files of one side have {types}; write it with one type"
                raise BadInput([Problem(file=path, message=text)])
    return {name for name, nanos in found.items() if nanos}


def _whole_microseconds(frame: DataFrame, names: Iterable[str]) -> list[str]:
    """Those of `names` whose values are all whole microseconds."""
    parts = [F.count_if(F.expr(f"{_quoted(name)} % 1000 != 0")).alias(name) for name in names]
    row = frame.agg(*parts).first() if parts else None
    return [name for name, count in row.asDict().items() if not count] if row else []
