"""Structs, lists and maps as JSON texts in which each value has its kind.

`{"s:a":["n:12e2",null]}`: the kinds are those of `canonical.py`; further ones are `x:` for bytes
and `u:` for text that is no UTF-8, both in hex. So nested values of different kinds differ as
scalars do: NaN is not the text "NaN", and bytes are not their text in JSON. A struct is a map of
its fields. JSON that is compared with a declared type is read by that type: text becomes a
timestamp.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from streamquake.harness.reconcile.json.json_record import exact_floating, exact_json
from streamquake.harness.reconcile.json.json_text import WITH_NULLS, base64_text
from streamquake.harness.reconcile.values.operand import LIST, OBJECT
from streamquake.harness.reconcile.values.scalars import (
    canonical_number,
    parse_date,
    parse_timestamp,
)

NESTED_MARK = "o:"
"""Prefix of such a text."""
REPEATED_MARK = "r"
"""The begin of a key that its map has again, before its place."""
TIMES = (TimestampType, TimestampNTZType)
NESTED = (ArrayType, MapType, StructType)
FLOATING_KEYS = re.compile("map<(?:float|double),")


def nested_text(value: Column, kind: DataType) -> Column:
    """A struct, list or map of a declared type; null for null."""
    if isinstance(kind, VariantType):
        return F.concat(F.lit(NESTED_MARK), F.to_json(F.parse_json(exact_json(F.to_json(value)))))
    tagged = F.to_json(F.parse_json(F.to_json(_tagged_value(value, kind), WITH_NULLS)))
    return _canonical_text(tagged, kind)


def nested_text_of_json(variant: Column, kind: DataType) -> Column:
    """A JSON value that is compared with a struct, list or map of type `kind`; null for null."""
    if isinstance(kind, VariantType):
        return F.concat(F.lit(NESTED_MARK), F.to_json(variant))
    return _canonical_text(F.to_json(_tagged_json(variant, kind)), kind)


def _canonical_text(tagged: Column, kind: DataType) -> Column:
    """The text of tagged values, whose names are sorted, as those of a variant are."""
    text = exact_floating(tagged)
    if FLOATING_KEYS.search(kind.simpleString()):
        # The keys are sorted again: their order must not depend on the type that wrote them. A map
        # may have both 0 and minus zero, which are one number; a variant has no name twice.
        text = F.coalesce(F.to_json(F.try_parse_json(text)), text)
    return F.concat(F.lit(NESTED_MARK), text)


def _tagged_value(value: Column, kind: DataType) -> Column:
    """A value in which each scalar is a text with its kind."""
    if isinstance(kind, StructType):
        fields = (
            _tagged_value(value.getField(field.name), field.dataType).alias(f"s:{field.name}")
            for field in kind
        )
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, ArrayType):
        element_kind = kind.elementType
        return F.transform(value, lambda element: _tagged_value(element, element_kind))
    if isinstance(kind, MapType):
        name_kind, value_kind = kind.keyType, kind.valueType
        names = F.map_keys(value)
        tagged = F.transform(names, lambda name: _tagged_key(name, name_kind))
        is_set = F.size(F.array_distinct(names)) == F.size(names)
        once = F.when(is_set, tagged).otherwise(_with_repeats_marked(tagged))
        items = F.transform(F.map_values(value), lambda item: _tagged_value(item, value_kind))
        return F.map_from_arrays(once, items)
    return _tagged_scalar(value, kind)


def _with_repeats_marked(names: Column) -> Column:
    """The texts of keys, with a mark and its place at each that is there before: Spark makes no map
    with a key twice."""

    def append(before: Column, name: Column) -> Column:
        place = F.size(before).cast("string")
        again = F.concat(F.lit(REPEATED_MARK), place, F.lit(":"), name)
        return F.array_append(before, F.when(F.array_contains(before, name), again).otherwise(name))

    return F.aggregate(names, F.array().cast("array<string>"), append)


def _tagged_key(value: Column, kind: DataType) -> Column:
    """A key of a map."""
    if isinstance(kind, NESTED):
        # Spark calls no Python function within lists, so floating point stays as Java writes it.
        return F.concat(F.lit(NESTED_MARK), F.to_json(_tagged_value(value, kind), WITH_NULLS))
    return _tagged_scalar(value, kind)


def _tagged_scalar(value: Column, kind: DataType) -> Column:
    """A scalar as a text with its kind. Floating point is as Java writes it; `exact_floating`
    rewrites it."""
    if isinstance(kind, StringType):
        invalid = F.concat(F.lit("u:"), F.hex(value))
        return F.when(F.is_valid_utf8(value), F.concat(F.lit("s:"), value)).otherwise(invalid)
    if isinstance(kind, BinaryType):
        return F.concat(F.lit("x:"), F.hex(value))
    if isinstance(kind, TIMES):
        return F.concat(F.lit("t:"), F.unix_micros(value.cast("timestamp")).cast("string"))
    if isinstance(kind, VariantType):
        return F.concat(F.lit("j:"), F.to_json(value))
    text = value.cast("string")
    if isinstance(kind, (IntegralType, DecimalType)):
        return F.concat(F.lit("n:"), canonical_number(text))
    return F.concat(F.lit(_MARKS.get(kind.typeName(), f"{kind.simpleString()}:")), text)


_MARKS = {"float": "e:", "double": "f:", "boolean": "b:", "date": "d:"}


def _tagged_json(variant: Column, kind: DataType) -> Column:
    """A JSON value in which each scalar is a text with its kind, as a variant."""
    if isinstance(kind, ArrayType):
        element_kind = kind.elementType
        items = F.try_variant_get(variant, "$", LIST)
        tagged = F.transform(items, lambda element: _tagged_json(element, element_kind)).cast(
            "variant"
        )
        return F.coalesce(tagged, _tagged_json_scalar(variant, StringType()))
    if isinstance(kind, (MapType, StructType)):
        items = F.try_variant_get(variant, "$", OBJECT)
        name_kind = kind.keyType if isinstance(kind, MapType) else StringType()
        tagged = F.transform_keys(
            F.transform_values(items, _tagged_json_item(kind)),
            lambda name, _: _tagged_json_key(name, name_kind),
        )
        return F.coalesce(F.to_variant_object(tagged), _tagged_json_scalar(variant, StringType()))
    return _tagged_json_scalar(variant, kind)


def _tagged_json_item(kind: MapType | StructType) -> Callable[[Column, Column], Column]:
    """A function from the name and the value of a field of an object to its text."""
    if isinstance(kind, MapType):
        value_kind = kind.valueType
        return lambda _, item: _tagged_json(item, value_kind)

    def read(name: Column, item: Column) -> Column:
        tagged = _tagged_json_scalar(item, StringType())
        for field in kind:
            tagged = F.when(name == field.name, _tagged_json(item, field.dataType)).otherwise(
                tagged
            )
        return tagged

    return read


def _tagged_json_scalar(variant: Column, kind: DataType) -> Column:
    json_kind, text = F.schema_of_variant(variant), F.try_variant_get(variant, "$", "string")
    exact = (json_kind == "BIGINT") | F.startswith(json_kind, F.lit("DECIMAL"))
    return (
        F.when(json_kind == "VOID", F.lit(None).cast("string"))
        .when(json_kind == "STRING", _tagged_json_text(text, kind))
        .when(exact, F.concat(F.lit("n:"), canonical_number(text)))
        .when(json_kind == "DOUBLE", F.concat(F.lit("f:"), text))
        .when(json_kind == "BOOLEAN", F.concat(F.lit("b:"), text))
        .otherwise(F.concat(F.lit("j:"), F.to_json(variant)))
    ).cast("variant")


def _tagged_json_text(text: Column, kind: DataType) -> Column:
    """A text with its kind; compared with times or bytes it is parsed as such."""
    parsed = F.lit(None).cast("string")
    if isinstance(kind, DateType):
        parsed = _tagged_scalar(parse_date(text), kind)
    elif isinstance(kind, TIMES):
        parsed = _tagged_scalar(parse_timestamp(text), kind)
    elif isinstance(kind, BinaryType):
        value = F.try_to_binary(text, F.lit("base64"))
        parsed = F.when(base64_text(value) == text, _tagged_scalar(value, kind))
    return F.coalesce(parsed, F.concat(F.lit("s:"), text))


def _tagged_json_key(name: Column, kind: DataType) -> Column:
    """The name of a field as the key of a map. Only the canonical spelling of a key is parsed, so
    that two names never become one key."""
    plain = F.concat(F.lit("s:"), name)
    if isinstance(kind, (StringType, *NESTED, VariantType)):
        return plain
    if isinstance(kind, BinaryType):
        return _tagged_json_text(name, kind)
    value = name.try_cast("timestamp" if isinstance(kind, TIMES) else kind)
    written = value.cast("string")
    if isinstance(kind, TIMES):
        micros = F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        written = F.concat(F.regexp_replace(micros, "000$", ""), F.lit("Z"))
    return F.when(written == name, _tagged_scalar(value, kind)).otherwise(plain)
