"""JSON lines: one object per line. Lines of white space are no records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from streamquake.harness.reconcile.json.json_record import not_blank
from streamquake.harness.reconcile.json.json_table import json_table
from streamquake.harness.reconcile.reading.files import FILE_PLACE, text_lines
from streamquake.harness.reconcile.reading.format import Format, formats
from streamquake.harness.reconcile.reading.partitions import Partitions
from streamquake.harness.reconcile.reading.table import Table


@formats.register
class Json(Format):
    """JSON lines."""

    name: ClassVar[str] = "json"
    extensions: ClassVar[tuple[str, ...]] = (".json", ".jsonl", ".ndjson")
    in_topics: ClassVar[bool] = True

    @classmethod
    def fits(cls, head: bytes) -> bool:
        return head.lstrip().startswith(b"{")

    def read(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        names: frozenset[str],
        partitions: Partitions,
    ) -> Table:
        lines, folder_names = text_lines(spark, paths, partitions)
        records = lines.where(not_blank(lines["value"]))
        return json_table(records, (*FILE_PLACE, *folder_names), names)

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
        return json_table(lines, place, names, lane=lane, position=position)
