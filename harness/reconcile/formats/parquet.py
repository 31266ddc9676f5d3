"""Parquet: typed columns. Files that were written with different columns are merged by name.

Spark's timestamps have microseconds. A column of timestamps in nanoseconds becomes a timestamp
where all its values are whole microseconds (pandas writes all times in nanoseconds); otherwise it
is the whole number in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from typing import ClassVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.files import FILE_PLACE, with_place
from streamquake.harness.reconcile.reading.format import Format, formats
from streamquake.harness.reconcile.reading.parquet_schema import (
    footer_schema,
    read_without_metadata,
    widened_schema,
)
from streamquake.harness.reconcile.reading.partitions import Partitions
from streamquake.harness.reconcile.reading.table import Table, mark_all_readable
from streamquake.topologies.problems import BadInput, Problem

NANOSECONDS = "TIMESTAMP(NANOS"
"""Parquet's name of timestamps in nanoseconds (LogicalTypeAnnotation)."""
DECIMAL = re.compile(r"DECIMAL\((?P<digits>\d+),")
"""Parquet's name of decimals, with their digits."""
MAX_DIGITS = 38
"""Of a decimal of Spark."""
TOO_MANY_DIGITS = "DECIMAL_PRECISION_EXCEEDS"
"""Spark's error where a column has decimals of more digits."""
INCOMPATIBLE_TYPES = "Failed to merge incompatible data types"
"""Spark's message where files have one column with several types."""


@formats.register
class Parquet(Format):
    """Parquet files."""

    name: ClassVar[str] = "parquet"
    extensions: ClassVar[tuple[str, ...]] = (".parquet",)
    bytes_per_record: ClassVar[int] = 15

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
        frame = with_place(rows.select(*map(quote_name, fields)), numbered=True)
        long_columns = {field.name for field in frame.schema if field.dataType == LongType()}
        nanos = sorted(_nanosecond_columns(spark, paths, names & long_columns))
        frame = frame.withColumns(
            {
                n: F.timestamp_micros(F.expr(f"{quote_name(n)} div 1000"))
                for n in _whole_microseconds(frame, nanos)
            }
        )
        return Table(
            frame=mark_all_readable(frame),
            columns=fields,
            place=FILE_PLACE,
            hidden=frozenset(rows.columns).intersection(FILE_PLACE),
        )


def _rows(spark: SparkSession, paths: Sequence[str], partitions: Partitions) -> DataFrame:
    reader = spark.read.options(**partitions.options)
    try:
        # Without the merge, Spark reads all files by the columns of one file.
        return read_without_metadata(reader.option("mergeSchema", "true"), paths)
    except (PySparkException, Py4JJavaError) as error:
        if TOO_MANY_DIGITS in str(error):
            _reject_long_decimals(spark, paths)
        if INCOMPATIBLE_TYPES not in str(error):
            raise
        return reader.schema(widened_schema(spark, paths)).parquet(*paths)


def _reject_long_decimals(spark: SparkSession, paths: Iterable[str]) -> None:
    """Raise BadInput with the first column of decimals that are too long for Spark."""
    for path in paths:
        with footer_schema(spark, path) as message:
            kinds = {
                ".".join(column.getPath()): str(
                    column.getPrimitiveType().getLogicalTypeAnnotation()
                )
                for column in message.getColumns()
            }
        for name, kind in kinds.items():
            if (match := DECIMAL.match(kind)) and int(match["digits"]) > MAX_DIGITS:
                text = (
                    f"Spark cannot read the type of the column `{name}`, {kind}: a decimal has at "
                    f"most {MAX_DIGITS} digits; write another type"
                )
                raise BadInput([Problem(file=path, message=text)])


def _nanosecond_columns(spark: SparkSession, paths: Sequence[str], names: Set[str]) -> set[str]:
    """Those of `names` that are timestamps in nanoseconds, by the footers. Raises BadInput where
    one file has timestamps and another has numbers, since Spark reads both as numbers."""
    is_nanos: dict[str, bool] = {}
    schemas: set[str] = set()
    for path in paths if names else ():
        with footer_schema(spark, path) as message:
            if (schema := str(message)) in schemas:
                continue
            schemas.add(schema)
            columns = {c.getName(): str(c.getLogicalTypeAnnotation()) for c in message.getFields()}
        for name in sorted(names & set(columns)):
            nanos = NANOSECONDS in columns[name]
            if is_nanos.setdefault(name, nanos) != nanos:
                types = f"one column, `{name}`, with timestamps of nanoseconds and with numbers"
                text = f"the Parquet files of one side have {types}; write it with one type"
                raise BadInput([Problem(file=path, message=text)])
    return {name for name, nanos in is_nanos.items() if nanos}


def _whole_microseconds(frame: DataFrame, names: Iterable[str]) -> list[str]:
    """Those of `names` whose values are all whole microseconds."""
    parts = [F.count_if(F.expr(f"{quote_name(name)} % 1000 != 0")).alias(name) for name in names]
    row = frame.agg(*parts).first() if parts else None
    return [name for name, count in row.asDict().items() if not count] if row else []
