"""Parquet: typed columns. Files that were written with different columns are merged by name.

Timestamps of nanoseconds do not go into Spark's type, which counts microseconds. Where no value of
a column has a part of a microsecond it is a timestamp all the same (pandas writes all its times
so); otherwise it is the whole number that stands in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from streamquake.harness.reconcile.format import Format, formats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamquake.harness.reconcile.partitions import Partitions
    from streamquake.harness.reconcile.table import Table

NANOSECONDS = "TIMESTAMP(NANOS"
"""What Parquet calls them (LogicalTypeAnnotation)."""
OTHER_TYPES = "Failed to merge incompatible data types"
"""What Spark says where files have one column with several types."""


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
        from pyspark.sql import functions as F

        from streamquake.harness.reconcile.files import FILE_PLACE, placed
        from streamquake.harness.reconcile.table import Table, all_readable

        rows = _rows(spark, paths, partitions)
        fields = tuple(name for name in rows.columns if name not in FILE_PLACE)
        whole = placed(rows.select(*map(_quoted, fields)), numbered=True)
        nanos = sorted(names & set(fields) & _of_nanoseconds(spark, paths[0]))
        whole = whole.withColumns(
            {n: F.timestamp_micros(F.expr(f"{_quoted(n)} div 1000")) for n in _whole(whole, nanos)}
        )
        return Table(frame=all_readable(whole), columns=fields, place=FILE_PLACE)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _rows(spark: SparkSession, paths: Sequence[str], partitions: Partitions) -> DataFrame:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from streamquake.harness.reconcile.parquet_schema import widened

    reader = spark.read.options(**partitions.options)
    try:
        # Without the merge one file's columns are taken for all files' columns.
        return reader.option("mergeSchema", "true").parquet(*paths)
    except (PySparkException, Py4JJavaError) as error:
        if OTHER_TYPES not in str(error):
            raise
        return reader.schema(widened(spark, paths)).parquet(*paths)


def _of_nanoseconds(spark: SparkSession, path: str) -> set[str]:
    """The columns of a file that hold timestamps of nanoseconds, by its footer."""
    from streamquake.harness.reconcile.parquet_schema import footer

    with footer(spark, path) as message:
        columns = message.getFields()
        return {c.getName() for c in columns if NANOSECONDS in str(c.getLogicalTypeAnnotation())}


def _whole(frame: DataFrame, names: Iterable[str]) -> list[str]:
    """Those of some columns in which every value is a whole number of microseconds."""
    from pyspark.sql import functions as F

    parts = [F.count_if(F.expr(f"{_quoted(name)} % 1000 != 0")).alias(name) for name in names]
    row = frame.agg(*parts).first() if parts else None
    return [name for name, count in row.asDict().items() if not count] if row else []
