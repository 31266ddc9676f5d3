"""Parquet: typed columns. Files that were written with different columns are merged by name.

Timestamps of nanoseconds do not go into Spark's type, which counts microseconds. Where no value of
a column has a part of a microsecond it is a timestamp all the same (pandas writes all its times
so); otherwise it is the whole number that stands in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from streamquake.harness.reconcile.format import Format, formats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamquake.harness.reconcile.table import Table

NANOSECONDS = "TIMESTAMP(NANOS"
"""What Parquet calls them (LogicalTypeAnnotation)."""


@formats.register
class Parquet(Format):
    """Parquet files."""

    name: ClassVar[str] = "parquet"
    extensions: ClassVar[tuple[str, ...]] = (".parquet",)

    @classmethod
    def fits(cls, head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def read(self, spark: SparkSession, paths: Sequence[str], names: frozenset[str]) -> Table:
        from pyspark.sql import functions as F

        from streamquake.harness.reconcile.files import FILE_PLACE, placed
        from streamquake.harness.reconcile.table import MALFORMED, RAW, Table

        # Without the merge one file's columns are taken for all files' columns.
        rows = spark.read.option("mergeSchema", "true").parquet(*paths)
        fields = tuple(name for name in rows.columns if name not in FILE_PLACE)
        whole = placed(rows.select(*map(_quoted, fields)))
        nanos = sorted(names & set(fields) & _of_nanoseconds(spark, paths[0]))
        whole = whole.withColumns(
            {n: F.timestamp_micros(F.expr(f"{_quoted(n)} div 1000")) for n in _whole(whole, nanos)}
        )
        frame = whole.withColumns({MALFORMED: F.lit(False), RAW: F.lit(None).cast("string")})
        return Table(frame=frame, columns=fields, place=FILE_PLACE)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _of_nanoseconds(spark: SparkSession, path: str) -> set[str]:
    """The columns of a file that hold timestamps of nanoseconds, by its footer."""
    context: Any = spark.sparkContext
    jvm, settings = context._jvm, context._jsc.hadoopConfiguration()
    plain = jvm.org.apache.hadoop.fs.Path(re.sub(r"\\(.)", r"\1", path))
    file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(plain, settings)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        columns = reader.getFooter().getFileMetaData().getSchema().getFields()
        return {c.getName() for c in columns if NANOSECONDS in str(c.getLogicalTypeAnnotation())}
    finally:
        reader.close()


def _whole(frame: DataFrame, names: Iterable[str]) -> list[str]:
    """Those of some columns in which every value is a whole number of microseconds."""
    from pyspark.sql import functions as F

    parts = [F.count_if(F.expr(f"{_quoted(name)} % 1000 != 0")).alias(name) for name in names]
    row = frame.agg(*parts).first() if parts else None
    return [name for name, count in row.asDict().items() if not count] if row else []
