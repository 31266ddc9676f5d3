"""Parquet: typed columns. Files that were written with different columns are merged by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from streamquake.harness.reconcile.format import Format, formats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamquake.harness.reconcile.table import Table


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
        whole = placed(rows.select(*(f"`{name}`" for name in fields)))
        frame = whole.withColumns({MALFORMED: F.lit(False), RAW: F.lit(None).cast("string")})
        return Table(frame=frame, columns=fields, place=FILE_PLACE)
