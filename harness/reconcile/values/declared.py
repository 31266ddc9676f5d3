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
from streamquake.harness.reconcile.values.operand import Operand
from streamquake.harness.reconcile.values.pairing import pair_operands
from streamquake.harness.reconcile.values.promised import NESTED, whole
from streamquake.topologies.problems import BadInput

TIMES = (TimestampType, TimestampNTZType)
RECORD = "record"
"""The stored column with the records of such formats; null for a malformed one."""
FOLDERS = "folders"
"""The stored column with the values of partition folders, for lines of JSON."""


def stored_columns(table: Table, value: Column, there: Column) -> list[Column]:
    """The columns to store of a table: `value`, and `RECORD` where the record is `there`."""
    fields = [
        F.col(quote_name(name)).cast(_storable(table.frame.schema[name].dataType)).alias(name)
        for name in table.columns
    ]
    # Parquet has no struct without fields.
    record = [F.when(there, F.struct(*fields)).alias(RECORD)] if fields else []
    return [value.alias("value"), *record]


def declared_fields(record: Column, kind: DataType, tree: Tree) -> tuple[dict[str, Column], Column]:
    """The fields of `tree` of a record of type `kind`, and whether all have their types. A missing
    field is null."""
    found = {name: _field(*_part(record, kind, name), each) for name, each in tree.items()}
    fits = reduce(and_, (each for _, each in found.values()), F.lit(True))
    return {name: value for name, (value, _) in found.items()}, fits


def without_types(tree: Tree) -> Tree:
    """The fields of the tree, each of any type."""
    return {
        name: without_types(each) if isinstance(each, dict) else None for name, each in tree.items()
    }


def _field(value: Column, kind: DataType, wanted: DataType | Tree | None) -> tuple[Column, Column]:
    if isinstance(wanted, dict):
        parts, fits = declared_fields(value, kind, wanted)
        return F.struct(*(part.alias(name) for name, part in parts.items())), fits
    if wanted is None:
        return value, F.lit(True)
    if isinstance(wanted, NESTED) and isinstance(kind, NESTED):
        return whole(value, kind), F.lit(True)
    return _promised_value(value, kind, wanted)


def _part(value: Column, kind: DataType, name: str) -> tuple[Column, DataType]:
    if isinstance(kind, StructType) and name in kind.names:
        return value.getField(name), kind[name].dataType
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return value.getItem(name), kind.valueType
    each = kind.elementType if isinstance(kind, ArrayType) else None
    if isinstance(each, StructType) and name in each.names:
        return value.getField(name), ArrayType(each[name].dataType)
    return F.lit(None).cast("string"), NullType()


def _promised_value(value: Column, kind: DataType, wanted: DataType) -> tuple[Column, Column]:
    """A value as the type `wanted`, and whether it is of that type or null."""
    none = F.lit(None).cast("string" if isinstance(wanted, NESTED) else wanted)
    if isinstance(kind, NullType):
        return none, F.lit(True)
    cast_value = _cast(value, wanted)
    try:
        pair = pair_operands(
            Operand.declared(cast_value, wanted), Operand.declared(value, kind), "", ""
        )
    except BadInput:
        return none, F.isnull(value)
    if isinstance(wanted, StringType) and isinstance(kind, TIMES):
        return none, F.isnull(value)
    same = F.coalesce(pair.expected == pair.actual, F.lit(False))
    return cast_value, F.isnull(value) | same


def _cast(value: Column, wanted: DataType) -> Column:
    """A value cast to the type `wanted`; null where the cast fails."""
    if isinstance(wanted, TimestampNTZType):
        # Text with a zone is a moment; a time without a zone is that moment in UTC.
        return value.try_cast(TimestampType()).cast(wanted)
    return value.try_cast(wanted)


def _storable(kind: DataType) -> DataType:
    """The type with text instead of each null type, which Parquet lacks."""
    if isinstance(kind, NullType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(_storable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _storable(kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(each.name, _storable(each.dataType)) for each in kind])
    return kind
