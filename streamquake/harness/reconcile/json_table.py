"""Lines of JSON as a table, with nothing about a value lost.

Each named field is parsed as a variant, which keeps whole numbers and decimals of 38 digits exact,
text apart from numbers, and null apart from a field that is missing. Types are inferred over all
records, not a sample: a field whose values are of one kind gets that type for computing with.
What is no object, goes on behind its object, or holds what is no UTF-8 is malformed.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, VariantType

from streamquake.harness.reconcile.table import MALFORMED, RAW, Table

_CORRUPT = "__corrupt"
_CELL = "__field_"
SHOWN_FIELDS = 1000
"""Records that are looked at for the fields there are, when one was named that is not there."""


def json_table(
    lines: DataFrame,
    place: tuple[str, ...],
    names: Iterable[str],
    *,
    lane: tuple[str, ...] = (),
    position: str | None = None,
) -> Table:
    """`lines` has `value` and `place`. A null value (a tombstone) is a record without fields."""
    wanted = sorted(set(names) - set(place))
    cells = {name: f"{_CELL}{turn}" for turn, name in enumerate(wanted)}
    # Kept, because the types must be known before anything can be compared.
    kept = _parsed(lines, place, cells).persist(StorageLevel.MEMORY_AND_DISK)
    seen = kept.agg(
        F.count(F.when(~F.col(MALFORMED), 1)).alias("readable"),
        *(F.expr(f"schema_of_variant_agg({cell})").alias(f"type{cell}") for cell in cells.values()),
        *(F.count(cell).alias(cell) for cell in cells.values()),
    ).first()
    assert seen is not None
    there = {name: cell for name, cell in cells.items() if seen[cell]}
    typed = {name: _typed(cell, seen[f"type{cell}"]) for name, cell in there.items()}
    columns = tuple(there) if len(there) == len(cells) else _fields(lines, place)
    return Table(
        frame=kept.withColumns(typed),
        columns=columns,
        place=place,
        origin="json",
        lane=lane,
        position=position,
        variants=there,
        blank=not seen.readable,
        kept=(kept,),
        # A cast of a variant costs as much as its parsing, and every pass would do it again.
        dear=True,
    )


def _parsed(lines: DataFrame, place: tuple[str, ...], cells: dict[str, str]) -> DataFrame:
    fields = [StructField(name, VariantType()) for name in cells]
    schema = StructType([*fields, StructField(_CORRUPT, StringType())])
    options = {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"}
    parsed = lines.select("value", *place, F.from_json("value", schema, options).alias("it"))
    broken = F.isnotnull("value") & (
        F.isnull("it") | F.isnotnull(f"it.{_CORRUPT}") | ~_one_object(F.col("value"))
    )
    marked = parsed.withColumn(MALFORMED, broken)
    return marked.select(
        *(F.when(~F.col(MALFORMED), F.col("it").getField(name)).alias(cell)
          for name, cell in cells.items()),
        *place, MALFORMED, F.when(F.col(MALFORMED), F.col("value")).alias(RAW),
    )  # fmt: skip


def _one_object(value: Column) -> Column:
    """Whether a text is one object and nothing behind it.

    Spark's reader stops at the object's end, so that two records torn into one line would pass for
    the first. A text whose first closing brace is its end has nothing behind it; any other is
    parsed once more as the first of two elements of a list.
    """
    text = F.trim(value, F.lit(" \t\r\n"))
    flat = F.instr(text, "}") == F.length(text)
    alone = F.expr("json_array_length(concat('[', value, ',0]')) <=> 2")
    return (
        F.startswith(text, F.lit("{"))
        & F.endswith(text, F.lit("}"))
        & F.expr("is_valid_utf8(value)")
        & (flat | alone)
    )


def _typed(cell: str, kind: str) -> Column:
    """A field with the type of all its values; still a variant where they are of several kinds."""
    if kind == "VARIANT":
        return F.col(cell)
    if kind == "VOID":
        return F.lit(None)
    return F.col(cell).cast(kind.replace("OBJECT<", "STRUCT<"))


def _fields(lines: DataFrame, place: tuple[str, ...]) -> tuple[str, ...]:
    """The fields of the first records, for a message."""
    keys = F.explode(F.expr("json_object_keys(value)"))
    found = lines.select("value").limit(SHOWN_FIELDS).select(keys.alias("field")).distinct()
    return tuple(sorted(row.field for row in found.collect() if row.field not in place))
