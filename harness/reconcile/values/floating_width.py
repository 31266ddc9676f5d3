"""The width of floating point within structs, lists and maps.

A FLOAT compared with a DOUBLE is its exact value, nested or not. So a nested type is changed to
another one, with the widths of the type that it is compared with, and values are cast to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructField,
    StructType,
)

Change = tuple[type[DataType], type[DataType]]
WIDEN: Change = (FloatType, DoubleType)
NARROW: Change = (DoubleType, FloatType)


def with_width_of(kind: DataType, other: DataType, *changes: Change) -> DataType:
    """The type with the widths of the other one at the same places, as far as these are the
    `changes`."""
    for own, wanted in changes:
        if isinstance(kind, own) and isinstance(other, wanted):
            return other
    if isinstance(kind, ArrayType) and isinstance(other, ArrayType):
        element_kind = with_width_of(kind.elementType, other.elementType, *changes)
        return ArrayType(element_kind, kind.containsNull)
    if isinstance(kind, MapType):
        name_kind = kind.keyType
        if isinstance(other, MapType):
            name_kind = with_width_of(name_kind, other.keyType, *changes)
        value_kind = kind.valueType
        for value in _values(other):
            value_kind = with_width_of(value_kind, value, *changes)
        return MapType(name_kind, value_kind, kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType([_field(field, other, changes) for field in kind])
    return kind


def _values(kind: DataType) -> Sequence[DataType]:
    """The types of the values of a map, or of a struct, which is compared as one."""
    if isinstance(kind, StructType):
        return [field.dataType for field in kind]
    return [kind.valueType] if isinstance(kind, MapType) else []


def _field(field: StructField, other: DataType, changes: Sequence[Change]) -> StructField:
    kind = field.dataType
    if isinstance(other, StructType):
        others = [each.dataType for each in other if each.name == field.name]
    else:
        others = list(_values(other))
    for each in others:
        kind = with_width_of(kind, each, *changes)
    return StructField(field.name, kind, field.nullable, field.metadata)
