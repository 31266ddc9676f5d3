"""Plain text: each line of a file, and each value of a topic, is a record with one field, `value`.

Kafka's VerifiableProducer writes this format: a number, or a prefix, a dot and a number. As in CSV
text has no type; compared with numbers it is read as a JSON number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.files import FILE_PLACE, text_lines
from streamquake.harness.reconcile.reading.format import Format, formats
from streamquake.harness.reconcile.reading.partitions import Partitions
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, Table


@formats.register
class Text(Format):
    """Plain text; it cannot be detected, so the user must name it."""

    name: ClassVar[str] = "text"
    extensions: ClassVar[tuple[str, ...]] = ()
    bytes_per_record: ClassVar[int] = 10
    in_topics: ClassVar[bool] = True

    @classmethod
    def fits(cls, head: bytes) -> bool:
        return False

    def read(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        names: frozenset[str],
        partitions: Partitions,
    ) -> Table:
        lines, folder_names = text_lines(spark, paths, partitions)
        return _table(lines.where("value != ''"), (*FILE_PLACE, *folder_names))

    def values(
        self,
        raw: DataFrame,
        place: tuple[str, ...],
        names: frozenset[str],
        *,
        lane: tuple[str, ...],
        position: str,
    ) -> Table:
        lines = raw.withColumn("value", raw["value"].cast("string"))
        return _table(lines, place, lane, position)


def _table(
    lines: DataFrame,
    place: tuple[str, ...],
    lane: tuple[str, ...] = (),
    position: str | None = None,
) -> Table:
    # A tombstone is a record whose value is null.
    marked = lines.withColumn(MALFORMED, F.isnotnull("value") & ~F.expr("is_valid_utf8(value)"))
    frame = marked.select(
        F.when(~F.col(MALFORMED), F.col("value")).alias("value"),
        *map(quote_name, place),
        MALFORMED,
        F.when(F.col(MALFORMED), F.hex("value")).alias(RAW),
    )
    return Table(
        frame=frame, columns=("value",), place=place, origin="csv", lane=lane, position=position
    )
