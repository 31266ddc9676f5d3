"""Avro: files that contain their schema, and values of a topic with a given schema.

Values may have the header of Confluent's wire format: a zero, then the number of the schema in four
bytes. One schema reads all values of a topic, or each number has its own. All values become records
of the schema with the highest number, by the schema resolution of Avro.
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
from streamquake.harness.reconcile.reading.table import MALFORMED, RAW, Table, all_readable
from streamquake.topologies.problems import BadInput, bad_input

HEADER_BYTES = 5
DECODED_MARK = "__read"
"""A field with a default that is added to every schema. A decoded value has it; a value that Spark
could not decode is a record of nulls without it."""
_BODY, _NUMBER, _HAS_HEADER = "__body", "__number", "__framed"
MAX_NUMBERS = 8


@formats.register
class Avro(Format):
    """Avro files, and Avro values in topics."""

    name: ClassVar[str] = "avro"
    extensions: ClassVar[tuple[str, ...]] = (".avro",)
    in_topics: ClassVar[bool] = True
    takes_schema: ClassVar[bool] = True
    numbers_schemas: ClassVar[bool] = True

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
        frame = all_readable(with_place(rows))
        return Table(frame=frame, columns=tuple(rows.columns), place=FILE_PLACE, costly=True)

    def values(
        self,
        raw: DataFrame,
        place: tuple[str, ...],
        names: frozenset[str],
        *,
        lane: tuple[str, ...],
        position: str,
    ) -> Table:
        header = self.needed_schema().header
        records = self._records()
        _add_jars(raw.sparkSession)
        framed = raw.select("value", *place, *_frame_columns(bool(header)))
        if header:
            self._reject_other_numbers(framed, records)
        read = framed.withColumn("it", _decoded(records))
        # A value that is null is a tombstone: a record without fields.
        malformed = F.isnotnull("value") & ~(F.col(_HAS_HEADER) & F.isnotnull(f"it.{DECODED_MARK}"))
        fields = tuple(field["name"] for field in _newest(records)["fields"])
        marked = read.withColumn(MALFORMED, malformed)
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
        """The schemas by their numbers. Raises BadInput for a schema that is not of a record."""
        assert self.schema is not None
        return {
            number: _record(text, self.schema.place) for number, text in self.schema.texts.items()
        }

    def _reject_other_numbers(self, framed: DataFrame, records: Mapping[str, Any]) -> None:
        """Raises BadInput for values whose header has an unknown number of a schema."""
        assert self.schema is not None
        numbers = framed.where(_HAS_HEADER).groupBy(_NUMBER).agg(F.count(F.lit(1)).alias("values"))
        found = {str(row[_NUMBER]): row["values"] for row in numbers.orderBy(_NUMBER).collect()}
        unknown = [number for number in found if number not in records]
        if not unknown or (len(found) == 1 and set(records) == {""}):
            return
        shown = ", ".join(
            f"{number} ({found[number]:,} values)" for number in unknown[:MAX_NUMBERS]
        )
        message = f"the headers have unknown numbers of schemas: {shown}"
        raise bad_input(
            self.schema.place,
            f"{message}; name the schema of each number: `schema: {{{unknown[0]}: FILE}}`",
        )


def _record(text: str, place: str) -> Any:
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise bad_input(place, f"expected an Avro schema in JSON: {error}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record" or "fields" not in schema:
        raise bad_input(place, "expected the schema of a record, got something else")
    return schema


def _newest(records: Mapping[str, Any]) -> Any:
    return records[max(records, key=lambda number: int(number or 0))]


def _frame_columns(header: bool) -> list[Column]:
    """The columns of a value: its bytes without the header, the number in the header, and whether
    it has a header."""
    if not header:
        return [
            F.col("value").alias(_BODY),
            F.lit(None).cast("long").alias(_NUMBER),
            F.lit(True).alias(_HAS_HEADER),
        ]
    number = F.conv(F.hex(F.expr("substring(value, 2, 4)")), 16, 10).cast("long")
    has_header = (F.length("value") >= HEADER_BYTES) & F.startswith(F.hex("value"), F.lit("00"))
    body = F.expr(f"substring(value, {HEADER_BYTES + 1})")
    return [
        body.alias(_BODY),
        number.alias(_NUMBER),
        F.coalesce(has_header, F.lit(False)).alias(_HAS_HEADER),
    ]


def _decoded(records: Mapping[str, Any]) -> Column:
    """A value as a record of the newest schema, decoded by the schema of its number."""
    newest = _newest(records)
    mark = {"name": DECODED_MARK, "type": "boolean", "default": True}
    reader = _literal(json.dumps({**newest, "fields": [*newest["fields"], mark]}))
    decoded = {
        number: F.expr(
            f"from_avro({_BODY}, {_literal(json.dumps(schema))}, "
            f"map('mode', 'PERMISSIVE', 'avroSchema', {reader}))"
        )
        for number, schema in records.items()
    }
    if set(decoded) == {""}:
        return decoded[""]
    return F.coalesce(*(F.when(F.col(_NUMBER) == int(n), value) for n, value in decoded.items()))


def _literal(text: str) -> str:
    """A text as a literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _add_jars(spark: SparkSession) -> None:
    """Add Spark's jars for Avro to the session, unless it has them already."""
    for jar in host_jars("spark-avro"):
        spark.sql(f"ADD JAR '{jar}'")


def _reject_several_schemas(spark: SparkSession, paths: Sequence[str]) -> None:
    """Raises BadInput for files with different schemas: Spark reads all files by the schema of one
    file, and would drop further fields of the others."""
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
