"""Avro: files that contain their schema, and values of a topic with a given schema.

Values may have the header of Confluent's wire format: a zero, then the schema ID in four bytes. One
schema reads all values of a topic, or each ID has its own. All values become records of the schema
with the highest ID, by the schema resolution of Avro.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.cluster.images.build import host_jars
from streamquake.harness.reconcile.reading.files import FILE_PLACE, with_place
from streamquake.harness.reconcile.reading.format import Format, formats
from streamquake.harness.reconcile.reading.partitions import Partitions
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, Table, mark_all_readable
from streamquake.topologies.problems import BadInput, bad_input

HEADER_BYTES = 5
DECODED_MARK = "__read"
"""A field with a default that is added to every schema. A decoded value has it; a value that Spark
could not decode is a record of nulls without it."""
_BODY, _SCHEMA_ID, _HAS_HEADER = "__body", "__number", "__framed"
MAX_IDS = 8


@formats.register
class Avro(Format):
    """Avro files, and Avro values in topics."""

    name: ClassVar[str] = "avro"
    extensions: ClassVar[tuple[str, ...]] = (".avro",)
    in_topics: ClassVar[bool] = True
    takes_schema: ClassVar[bool] = True
    has_schema_ids: ClassVar[bool] = True

    def check_schema(self) -> None:
        self._records()

    @classmethod
    def fits(cls, head: bytes) -> bool:
        return head.startswith(b"Obj\x01")

    def read(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        names: frozenset[str],
        partitions: Partitions,
    ) -> Table:
        _add_jars(spark)
        reader = spark.read.format("avro").options(ignoreExtension=True, **partitions.options)
        if self.schema is None:
            _reject_several_schemas(spark, paths)
        elif self.schema.header:
            raise bad_input(self.schema.place, "records in files have no header; remove it")
        else:
            reader = reader.option("avroSchema", json.dumps(_newest(self._records())))
        rows = reader.load(list(paths))
        frame = mark_all_readable(with_place(rows))
        return Table(
            frame=frame,
            columns=tuple(rows.columns),
            place=FILE_PLACE,
            hidden=frozenset(rows.columns).intersection(FILE_PLACE),
            costly=True,
        )

    def values(
        self,
        raw: DataFrame,
        place: tuple[str, ...],
        names: frozenset[str],
        *,
        lane: tuple[str, ...],
        position: str,
    ) -> Table:
        header = self.required_schema().header
        records = self._records()
        _add_jars(raw.sparkSession)
        framed = raw.select("value", *place, *_header_columns(bool(header)))
        if header:
            self._reject_unknown_ids(framed, records)
        decoded_rows = framed.withColumn("it", _decoded_record(records))
        # A value that is null is a tombstone: a record without fields.
        malformed = F.isnotnull("value") & ~(F.col(_HAS_HEADER) & F.isnotnull(f"it.{DECODED_MARK}"))
        fields = tuple(field["name"] for field in _newest(records)["fields"])
        marked = decoded_rows.withColumn(MALFORMED, malformed)
        frame = marked.select(
            *(F.when(~F.col(MALFORMED), F.col("it").getField(name)).alias(name) for name in fields),
            *place,
            MALFORMED,
            F.when(F.col(MALFORMED), F.hex("value")).alias(RAW),
        )
        return Table(
            frame=frame, columns=fields, place=place, lane=lane, position=position, costly=True
        )

    def _records(self) -> dict[str, Any]:
        """The schemas by their IDs. Raises BadInput for a schema that is not of a record."""
        assert self.schema is not None
        return {
            schema_id: _record(text, self.schema.place)
            for schema_id, text in self.schema.texts.items()
        }

    def _reject_unknown_ids(self, framed: DataFrame, records: Mapping[str, Any]) -> None:
        """Raises BadInput for values whose header has an unknown schema ID."""
        assert self.schema is not None
        id_counts = (
            framed.where(_HAS_HEADER).groupBy(_SCHEMA_ID).agg(F.count(F.lit(1)).alias("values"))
        )
        values_by_id = {
            str(row[_SCHEMA_ID]): row["values"] for row in id_counts.orderBy(_SCHEMA_ID).collect()
        }
        unknown = [schema_id for schema_id in values_by_id if schema_id not in records]
        if not unknown or (len(values_by_id) == 1 and set(records) == {""}):
            return
        shown = ", ".join(
            f"{schema_id} ({values_by_id[schema_id]:,} values)" for schema_id in unknown[:MAX_IDS]
        )
        message = f"the headers have unknown schema IDs: {shown}"
        raise bad_input(
            self.schema.place,
            f"{message}; name the schema of each ID: `schema: {{{unknown[0]}: FILE}}`",
        )


def _record(text: str, place: str) -> Any:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad_input(place, f"expected an Avro schema in JSON: {error}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record" or "fields" not in schema:
        raise bad_input(place, "expected the schema of a record, got something else")
    return schema


def _newest(records: Mapping[str, Any]) -> Any:
    return records[max(records, key=lambda schema_id: int(schema_id or 0))]


def _header_columns(header: bool) -> list[Column]:
    """The columns of a value: its bytes without the header, the schema ID in the header, and
    whether it has a header."""
    if not header:
        return [
            F.col("value").alias(_BODY),
            F.lit(None).cast("long").alias(_SCHEMA_ID),
            F.lit(True).alias(_HAS_HEADER),
        ]
    schema_id = F.conv(F.hex(F.expr("substring(value, 2, 4)")), 16, 10).cast("long")
    has_header = (F.length("value") >= HEADER_BYTES) & F.startswith(F.hex("value"), F.lit("00"))
    body = F.expr(f"substring(value, {HEADER_BYTES + 1})")
    return [
        body.alias(_BODY),
        schema_id.alias(_SCHEMA_ID),
        F.coalesce(has_header, F.lit(False)).alias(_HAS_HEADER),
    ]


def _decoded_record(records: Mapping[str, Any]) -> Column:
    """A value as a record of the newest schema, decoded by the schema of its ID."""
    newest = _newest(records)
    mark = {"name": DECODED_MARK, "type": "boolean", "default": True}
    reader = _literal(json.dumps({**newest, "fields": [*newest["fields"], mark]}))
    decoded = {
        schema_id: F.expr(
            f"from_avro({_BODY}, {_literal(json.dumps(schema))}, "
            f"map('mode', 'PERMISSIVE', 'avroSchema', {reader}))"
        )
        for schema_id, schema in records.items()
    }
    if set(decoded) == {""}:
        return decoded[""]
    return F.coalesce(*(F.when(F.col(_SCHEMA_ID) == int(n), value) for n, value in decoded.items()))


def _literal(text: str) -> str:
    """A text as a literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _add_jars(spark: SparkSession) -> None:
    """Add Spark's jars for Avro to the session, unless it has them already."""
    for jar in host_jars("spark-avro"):
        spark.sql(f"ADD JAR '{jar}'")


def _reject_several_schemas(spark: SparkSession, paths: Sequence[str]) -> None:
    """Raises BadInput for files with different schemas: Spark reads all files by the schema of one
    file, and would drop other fields of the other files."""
    first = None
    for path in paths if len(paths) > 1 else ():
        schema = spark.read.format("avro").option("ignoreExtension", True).load(path).schema
        first = first or schema
        if schema != first:
            raise _different_schema(path, paths[0])


def _different_schema(path: str, first: str) -> BadInput:
    message = f"its schema differs from that of {first}; name the schema to read all files by,"
    where = "at the job's output or in the file of --actual-map or --expected-map"
    return bad_input(path, f"{message} `format: avro` and `schema: FILE` {where}")
