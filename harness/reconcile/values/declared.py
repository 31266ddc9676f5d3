"""Converts records with declared types (Parquet, Avro, Protobuf) to the promised types.

A value has its promised type where the comparison of two data sets (`pairing.py`) takes it as equal
to its cast: 7 of INT is a BIGINT, 0.1 of FLOAT is no DOUBLE. Types that cannot be compared there
have no values in common. A promised text is no timestamp, since one moment has many texts.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.custom_shape import Tree
from streamquake.harness.reconcile.reading.table import Table
from streamquake.harness.reconcile.values.floating_width import NARROW, WIDEN, with_width_of
from streamquake.harness.reconcile.values.nested import nested_text
from streamquake.harness.reconcile.values.operand import Operand
from streamquake.harness.reconcile.values.pairing import pair_operands
from streamquake.harness.reconcile.values.promised import NESTED
from streamquake.topologies.problems import BadInput

TIMES = (TimestampType, TimestampNTZType)
RECORD = "record"
"""The stored column with the records of such formats; null for a malformed one."""
FOLDERS = "folders"
"""The stored column with the values of partition folders, for lines of JSON."""


def stored_columns(table: Table, value: Column, readable: Column) -> list[Column]:
    """The columns to store of a table: `value`, and `RECORD` where the record is `readable`."""
    fields = [
        F.col(quote_name(name)).cast(_storable(table.frame.schema[name].dataType)).alias(name)
        for name in table.columns
    ]
    # Parquet has no struct without fields.
    record = [F.when(readable, F.struct(*fields)).alias(RECORD)] if fields else []
    return [value.alias("value"), *record]


def declared_fields(record: Column, kind: DataType, tree: Tree) -> tuple[dict[str, Column], Column]:
    """The fields of `tree` of a record of type `kind`, and whether all have their types. A missing
    field is null."""
    fields = {name: _field(*_part(record, kind, name), promised) for name, promised in tree.items()}
    fits = reduce(and_, (field_fits for _, field_fits in fields.values()), F.lit(True))
    return {name: value for name, (value, _) in fields.items()}, fits


def without_types(tree: Tree) -> Tree:
    """The fields of the tree, each of any type."""
    return {
        name: without_types(kind) if isinstance(kind, dict) else None for name, kind in tree.items()
    }


def _field(
    value: Column, kind: DataType, promised: DataType | Tree | None
) -> tuple[Column, Column]:
    if isinstance(promised, dict):
        parts, fits = declared_fields(value, kind, promised)
        return F.struct(*(part.alias(name) for name, part in parts.items())), fits
    if promised is None:
        return value, F.lit(True)
    if isinstance(promised, NESTED) and isinstance(kind, NESTED):
        return _nested_value(value, kind, promised)
    return _promised_value(value, kind, promised)


def _part(value: Column, kind: DataType, name: str) -> tuple[Column, DataType]:
    if isinstance(kind, StructType) and name in kind.names:
        return value.getField(name), kind[name].dataType
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return value.getItem(name), kind.valueType
    element = kind.elementType if isinstance(kind, ArrayType) else None
    if isinstance(element, StructType) and name in element.names:
        return value.getField(name), ArrayType(element[name].dataType)
    return F.lit(None).cast("string"), NullType()


def _nested_value(value: Column, kind: DataType, promised: DataType) -> tuple[Column, Column]:
    """A struct, list or map as the text of a value with the promised widths of floating point, and
    whether it has them exactly: a DOUBLE of 0.1 is no FLOAT."""
    text = nested_text(value, kind)
    wanted = with_width_of(kind, promised, WIDEN, NARROW)
    if wanted == kind:
        return text, F.lit(True)
    cast_value = value.cast(wanted)
    return nested_text(cast_value, wanted), text.eqNullSafe(
        nested_text(cast_value.cast(kind), kind)
    )


def _promised_value(value: Column, kind: DataType, promised: DataType) -> tuple[Column, Column]:
    """A value as the type `promised`, and whether it is of that type or null."""
    null = F.lit(None).cast("string" if isinstance(promised, NESTED) else promised)
    if isinstance(kind, NullType):
        return null, F.lit(True)
    cast_value = _cast(value, promised)
    try:
        pair = pair_operands(
            Operand.of_declared_type(cast_value, promised),
            Operand.of_declared_type(value, kind),
            "",
            "",
        )
    except BadInput:
        return null, F.isnull(value)
    if isinstance(promised, StringType) and isinstance(kind, TIMES):
        return null, F.isnull(value)
    same = F.coalesce(pair.expected == pair.actual, F.lit(False))
    return cast_value, F.isnull(value) | same


def _cast(value: Column, promised: DataType) -> Column:
    """A value cast to the type `promised`; null where the cast fails."""
    if isinstance(promised, TimestampNTZType):
        # Text with a zone is a moment; a time without a zone is that moment in UTC.
        return value.try_cast(TimestampType()).cast(promised)
    return value.try_cast(promised)


def _storable(kind: DataType) -> DataType:
    """The type with text instead of each null type, which Parquet lacks."""
    if isinstance(kind, NullType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(_storable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _storable(kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _storable(field.dataType)) for field in kind])
    return kind
