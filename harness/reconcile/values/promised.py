"""Converts JSON values to the promised types: a value has exactly its type, or it is malformed.

A number is its exact value: 7, 7.0 and 7e0 are one BIGINT and one DECIMAL(10, 2), 7.004 is neither.
A DOUBLE or FLOAT is a number whose shortest numeral in that type is the same number. Text is in
quotes, and so are dates (the day alone) and timestamps (to the second at least and the microsecond
at most). Arrays, structs and maps are compared as a whole, as canonical texts.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.json.json_record import numeral
from streamquake.harness.reconcile.json.json_text import base64_text
from streamquake.harness.reconcile.values.nested import TIMES, nested_text, nested_text_of_json
from streamquake.harness.reconcile.values.scalars import (
    canonical_number,
    exact_numeral_of,
    numeral_of,
    parse_date,
    parse_timestamp,
)

NESTED = (ArrayType, MapType, StructType, VariantType)
NUMBERS = (IntegralType, DecimalType, DoubleType, FloatType)
WHOLE_NUMBER = r"^-?[0-9]+\z"


def promised_value(cell: Column, kind: DataType) -> tuple[Column, Column]:
    """A field (a variant) as a value of `kind`, and whether it is of that type or null."""
    text = F.try_variant_get(cell, "$", "string")
    json_kind = F.schema_of_variant(cell)
    null = F.isnull(cell) | (json_kind == "VOID")
    if isinstance(kind, NESTED):
        return F.when(~null, nested_text_of_json(cell, kind)), F.lit(True)
    value, fits = (
        _of_number(cell, kind) if isinstance(kind, NUMBERS) else _of_text(text, json_kind, kind)
    )
    return F.when(~null & fits, value), null | F.coalesce(fits, F.lit(False))


def with_canonical_texts(frame: DataFrame) -> DataFrame:
    """A frame of promised types with its arrays, structs and maps as canonical texts."""
    texts = {
        field.name: nested_text(F.col(quote_name(field.name)), field.dataType)
        for field in frame.schema
        if isinstance(field.dataType, NESTED)
    }
    return frame.withColumns(texts) if texts else frame


def _of_text(text: Column, json_kind: Column, kind: DataType) -> tuple[Column, Column]:
    value = text.try_cast(kind)
    if isinstance(kind, StringType):
        return text, json_kind == "STRING"
    if isinstance(kind, BooleanType):
        return value, json_kind == "BOOLEAN"
    if isinstance(kind, BinaryType):
        value = F.try_to_binary(text, F.lit("base64"))
        return value, (json_kind == "STRING") & (base64_text(value) == text)
    if isinstance(kind, (DateType, *TIMES)):
        value = parse_date(text) if isinstance(kind, DateType) else parse_timestamp(text).cast(kind)
        return value, (json_kind == "STRING") & F.isnotnull(value)
    return value, F.lit(False)


def _of_number(cell: Column, kind: DataType) -> tuple[Column, Column]:
    if isinstance(kind, IntegralType):
        text = exact_numeral_of(cell)
        value = text.try_cast(kind)
        return value, text.rlike(WHOLE_NUMBER) & F.isnotnull(value)
    text = numeral_of(cell)
    value = text.try_cast(kind)
    if isinstance(kind, DecimalType):
        written = value.cast("string")
    else:
        written = numeral(value, bits=32 if isinstance(kind, FloatType) else 64)
    return value, canonical_number(written) == canonical_number(text)
