"""Structs, lists and maps as JSON texts in which each value has its kind.

`{"s:a":["n:12e2",null]}`: the kinds are those of `canonical.py`; further ones are `x:` for bytes
and `u:` for text that is no UTF-8, both in hex. So nested values of different kinds differ as
single ones do: NaN is not the text "NaN", and bytes are not their text in JSON. A struct is a map
of its fields. JSON that is compared with a declared type is read by that type: text becomes a
timestamp.
"""

from __future__ import annotations

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
TIMES = (TimestampType, TimestampNTZType)
NESTED = (ArrayType, MapType, StructType)


def nested_text(value: Column, kind: DataType) -> Column:
    """A struct, list or map of a declared type; null for null."""
    if isinstance(kind, VariantType):
        return F.concat(F.lit(NESTED_MARK), F.to_json(F.parse_json(exact_json(F.to_json(value)))))
    tagged = F.to_json(F.parse_json(F.to_json(_tagged(value, kind), WITH_NULLS)))
    return F.concat(F.lit(NESTED_MARK), exact_floating(tagged))


def nested_text_of_json(variant: Column, kind: DataType) -> Column:
    """A JSON value that is compared with a struct, list or map of type `kind`; null for null."""
    if isinstance(kind, VariantType):
        return F.concat(F.lit(NESTED_MARK), F.to_json(variant))
    return F.concat(F.lit(NESTED_MARK), exact_floating(F.to_json(_read(variant, kind))))


def _tagged(value: Column, kind: DataType) -> Column:
    """A value whose single values are texts with their kinds."""
    if isinstance(kind, StructType):
        fields = (
            _tagged(value.getField(each.name), each.dataType).alias(f"s:{each.name}")
            for each in kind
        )
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, ArrayType):
        each_kind = kind.elementType
        return F.transform(value, lambda each: _tagged(each, each_kind))
    if isinstance(kind, MapType):
        name_kind, value_kind = kind.keyType, kind.valueType
        named = F.transform_keys(value, lambda name, _: _name(name, name_kind))
        return F.transform_values(named, lambda _, each: _tagged(each, value_kind))
    return _text(value, kind)


def _name(value: Column, kind: DataType) -> Column:
    """A key of a map."""
    if isinstance(kind, NESTED):
        # Spark calls no Python function within lists, so floating point stays as Java writes it.
        return F.concat(F.lit(NESTED_MARK), F.to_json(_tagged(value, kind), WITH_NULLS))
    return _text(value, kind)


def _text(value: Column, kind: DataType) -> Column:
    """A single value with its kind. Floating point is as Java writes it; `exact_floating` rewrites
    it."""
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


def _read(variant: Column, kind: DataType) -> Column:
    """A JSON value whose single values are texts with their kinds, as a variant."""
    if isinstance(kind, ArrayType):
        each_kind = kind.elementType
        found = F.try_variant_get(variant, "$", LIST)
        read = F.transform(found, lambda each: _read(each, each_kind)).cast("variant")
        return F.coalesce(read, _single(variant, StringType()))
    if isinstance(kind, (MapType, StructType)):
        found = F.try_variant_get(variant, "$", OBJECT)
        name_kind = kind.keyType if isinstance(kind, MapType) else StringType()
        read = F.transform_keys(
            F.transform_values(found, _part_of(kind)), lambda name, _: _read_name(name, name_kind)
        )
        return F.coalesce(F.to_variant_object(read), _single(variant, StringType()))
    return _single(variant, kind)


def _part_of(kind: MapType | StructType) -> Callable[[Column, Column], Column]:
    """A function from the name and the value of a field of an object to its text."""
    if isinstance(kind, MapType):
        value_kind = kind.valueType
        return lambda _, each: _read(each, value_kind)

    def read(name: Column, each: Column) -> Column:
        found = _single(each, StringType())
        for field in kind:
            found = F.when(name == field.name, _read(each, field.dataType)).otherwise(found)
        return found

    return read


def _single(variant: Column, kind: DataType) -> Column:
    found, text = F.schema_of_variant(variant), F.try_variant_get(variant, "$", "string")
    exact = (found == "BIGINT") | F.startswith(found, F.lit("DECIMAL"))
    return (
        F.when(found == "VOID", F.lit(None).cast("string"))
        .when(found == "STRING", _of_text(text, kind))
        .when(exact, F.concat(F.lit("n:"), canonical_number(text)))
        .when(found == "DOUBLE", F.concat(F.lit("f:"), text))
        .when(found == "BOOLEAN", F.concat(F.lit("b:"), text))
        .otherwise(F.concat(F.lit("j:"), F.to_json(variant)))
    ).cast("variant")


def _of_text(text: Column, kind: DataType) -> Column:
    """A text with its kind; compared with times or bytes it is parsed as such."""
    found = F.lit(None).cast("string")
    if isinstance(kind, DateType):
        found = _text(parse_date(text), kind)
    elif isinstance(kind, TIMES):
        found = _text(parse_timestamp(text), kind)
    elif isinstance(kind, BinaryType):
        value = F.try_to_binary(text, F.lit("base64"))
        found = F.when(base64_text(value) == text, _text(value, kind))
    return F.coalesce(found, F.concat(F.lit("s:"), text))


def _read_name(name: Column, kind: DataType) -> Column:
    """The name of a field as the key of a map. Only the canonical spelling of a key is parsed, so
    that two names never become one key."""
    plain = F.concat(F.lit("s:"), name)
    if isinstance(kind, (StringType, *NESTED, VariantType)):
        return plain
    if isinstance(kind, BinaryType):
        return _of_text(name, kind)
    value = name.try_cast("timestamp" if isinstance(kind, TIMES) else kind)
    written = value.cast("string")
    if isinstance(kind, TIMES):
        micros = F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        written = F.concat(F.regexp_replace(micros, "000$", ""), F.lit("Z"))
    return F.when(written == name, _text(value, kind)).otherwise(plain)
