"""`postgresql://[user@]host[:port]/database/[schema.]table`: the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from pyspark.sql import SparkSession

from streamquake.harness.reconcile.json.json_table import json_table
from streamquake.harness.reconcile.reading.database_address import shown, table_address
from streamquake.harness.reconcile.reading.database_table import (
    rows_at_once,
    with_place,
)
from streamquake.harness.reconcile.reading.promised_columns import TABLE_LANE, TABLE_POSITION
from streamquake.harness.reconcile.reading.source import NO_PROPERTIES, ReadRequest, Source, sources
from streamquake.harness.reconcile.reading.table import Table
from streamquake.topologies.problems import bad_input

PLACE = (*TABLE_LANE, TABLE_POSITION)


@sources.register
class PostgresqlTable(Source):
    """One table of PostgreSQL."""

    name: ClassVar[str] = "postgresql"
    needs_jars: ClassVar[bool] = True

    def __init__(self, uris: Sequence[str], properties: Mapping[str, str] = NO_PROPERTIES) -> None:
        super().__init__(uris, properties)
        if len(uris) > 1:
            raise bad_input(shown(uris[1]), "one side is one table, and another is given already")
        try:
            self.address = table_address(uris[0])
        except ValueError as error:
            raise bad_input(shown(uris[0]), str(error)) from error

    def inspect(self) -> int | None:
        return None

    def read(self, spark: SparkSession, request: ReadRequest) -> Table:
        if request.format not in (None, "json") or request.schema is not None:
            raise bad_input(self.uris[0], "a table has its columns; leave format and schema out")
        found = rows_at_once(spark, self.address)
        request.show_message(f"{self.uris[0]}: {found.count:,} rows")
        lines = with_place(found.frame, self.address).toDF("value", *PLACE)
        table = json_table(lines, PLACE, request.names)
        transactions = f"{found.prepared} prepared transactions that changed tables have not ended"
        return replace(
            table,
            notes=(*table.notes, *([f"{self.uris[0]}: {transactions}"] if found.prepared else [])),
            record_estimate=found.count,
            persisted_frames=(*table.persisted_frames, found.frame),
        )
