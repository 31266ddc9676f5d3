"""Times within arrays, structs and maps of JSON, in one form wherever the type says time.

Spark writes a time in milliseconds by itself, and this project in microseconds, to lose none. A
text that only looks like a time stays as it is, also beside a time in the same struct.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_WHOLE_MILLIS = r"^([0-9-]{10,}T[0-9:]{8}[.][0-9]{3})000(Z?)\z"


def times_in_millis(variant: Column, kind: DataType) -> Column:
    """A variant in which each time that `kind` has, and that is whole milliseconds, is written
    with milliseconds. What is not of that type stays as it is."""
    if not has_times(kind):
        return variant
    return F.coalesce(_with_times(variant, kind), variant)


def has_times(kind: DataType) -> bool:
    """Whether values of a type hold times."""
    if isinstance(kind, StructType):
        return any(has_times(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return has_times(kind.elementType)
    if isinstance(kind, MapType):
        return has_times(kind.valueType)
    return isinstance(kind, (TimestampType, TimestampNTZType))


def _with_times(variant: Column, kind: DataType) -> Column:
    """Null where the variant is not of that type."""
    if isinstance(kind, StructType):
        return F.to_variant_object(
            F.transform_values(_parts_by_name(variant), _fields_with_times(kind))
        )
    if isinstance(kind, MapType):
        value_type = kind.valueType
        values = F.transform_values(
            _parts_by_name(variant), lambda name, value: times_in_millis(value, value_type)
        )
        return F.to_variant_object(values)
    if isinstance(kind, ArrayType):
        element_type = kind.elementType
        elements = F.try_variant_get(variant, "$", "array<variant>")
        return F.transform(elements, lambda each: times_in_millis(each, element_type)).cast(
            "variant"
        )
    text = F.when(
        F.schema_of_variant(variant) == "STRING", F.try_variant_get(variant, "$", "string")
    )
    return F.regexp_replace(text, _WHOLE_MILLIS, "$1$2").cast("variant")


def _parts_by_name(variant: Column) -> Column:
    return F.try_variant_get(variant, "$", "map<string,variant>")


def _fields_with_times(kind: StructType) -> Callable[[Column, Column], Column]:
    """What becomes of a field, given its name and its value."""
    timed = [field for field in kind if has_times(field.dataType)]

    def changed(name: Column, value: Column) -> Column:
        found = value
        for field in timed:
            found = F.when(name == field.name, times_in_millis(value, field.dataType)).otherwise(
                found
            )
        return found

    return changed
