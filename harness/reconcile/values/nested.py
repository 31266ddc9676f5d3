"""Structs, lists and maps whole, as JSON texts in which every value stands with its kind.

`{"s:a":["n:12e2",null]}`: the kinds are those of `canonical.py`, and `x:` bytes in hex, `u:` a text
that is no UTF-8, in hex too. So values of different kinds differ within each other as they do
alone: NaN is not the text "NaN", bytes are not the text that JSON has for them. A struct is the map
of its fields. Values of JSON are read as the type beside them has it: a text where it says time.
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
"""How such a text begins."""
TIMES = (TimestampType, TimestampNTZType)
NESTED = (ArrayType, MapType, StructType)


def nested_text(value: Column, kind: DataType) -> Column:
    """A struct, list or map of a declared type; null for null."""
    if isinstance(kind, VariantType):
        return F.concat(F.lit(NESTED_MARK), F.to_json(F.parse_json(exact_json(F.to_json(value)))))
    tagged = F.to_json(F.parse_json(F.to_json(_tagged(value, kind), WITH_NULLS)))
    return F.concat(F.lit(NESTED_MARK), exact_floating(tagged))


def nested_text_of_json(variant: Column, kind: DataType) -> Column:
    """What JSON has where a struct, list or map of type `kind` is beside it; null for null."""
    if isinstance(kind, VariantType):
        return F.concat(F.lit(NESTED_MARK), F.to_json(variant))
    return F.concat(F.lit(NESTED_MARK), exact_floating(F.to_json(_read(variant, kind))))


def _tagged(value: Column, kind: DataType) -> Column:
    """A value with texts for all that is in it."""
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
        name_kind, kept_kind = kind.keyType, kind.valueType
        named = F.transform_keys(value, lambda name, _: _name(name, name_kind))
        return F.transform_values(named, lambda _, each: _tagged(each, kept_kind))
    return _text(value, kind)


def _name(value: Column, kind: DataType) -> Column:
    """The name of a value in a map."""
    if isinstance(kind, NESTED):
        # In lists no function of Python can be called, so floating point stays as Java writes it.
        return F.concat(F.lit(NESTED_MARK), F.to_json(_tagged(value, kind), WITH_NULLS))
    return _text(value, kind)


def _text(value: Column, kind: DataType) -> Column:
    """A single value; floating point as Java writes it, to be written anew (`floating_written`)."""
    if isinstance(kind, StringType):
        odd = F.concat(F.lit("u:"), F.hex(value))
        return F.when(F.is_valid_utf8(value), F.concat(F.lit("s:"), value)).otherwise(odd)
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
    """A value of JSON, a variant, with texts for all that is in it; a variant too."""
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
    """What becomes of a part of an object, given its name and its value."""
    if isinstance(kind, MapType):
        kept_kind = kind.valueType
        return lambda _, each: _read(each, kept_kind)

    def read(name: Column, each: Column) -> Column:
        found = _single(each, StringType())
        for field in kind:
            found = F.when(name == field.name, _read(each, field.dataType)).otherwise(found)
        return found

    return read


def _single(variant: Column, kind: DataType) -> Column:
    message, text = F.schema_of_variant(variant), F.try_variant_get(variant, "$", "string")
    exact = (message == "BIGINT") | F.startswith(message, F.lit("DECIMAL"))
    return (
        F.when(message == "VOID", F.lit(None).cast("string"))
        .when(message == "STRING", _of_text(text, kind))
        .when(exact, F.concat(F.lit("n:"), canonical_number(text)))
        .when(message == "DOUBLE", F.concat(F.lit("f:"), text))
        .when(message == "BOOLEAN", F.concat(F.lit("b:"), text))
        .otherwise(F.concat(F.lit("j:"), F.to_json(variant)))
    ).cast("variant")


def _of_text(text: Column, kind: DataType) -> Column:
    """A text, which beside times and bytes may be one."""
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
    """A name of an object as one of a map: only as the type writes it, so that no two are one."""
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
