"""Values of different types in one canonical form: two are equal exactly when they mean the same.

A value becomes text that begins with its kind: `n:12e2` is the number 1200 in any spelling (digits
without zeros at either end, and a power of ten, so any number of digits is exact), `s:` text, `b:`
true or false, `t:` a moment in microseconds since 1970, `d:` a date, `j:` an object or list as
JSON, `o:` an object or list of a declared type (`nested.py`). `display_value` is the inverse.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import FloatType

from streamquake.harness.reconcile.json.json_record import exact_json, numeral
from streamquake.harness.reconcile.json.json_text import json_text
from streamquake.harness.reconcile.values.floating_width import WIDEN, with_width_of
from streamquake.harness.reconcile.values.nested import (
    NESTED_MARK,
    REPEATED_MARK,
    nested_text,
    nested_text_of_json,
)
from streamquake.harness.reconcile.values.operand import OBJECT_OR_LIST, SEVERAL_KINDS, Operand
from streamquake.harness.reconcile.values.scalars import (
    NUMERAL,
    canonical_number,
    numeral_of,
    parse_date,
    parse_timestamp,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_DIGITS_SHOWN = 60
"""Longest number that is written out, in digits."""


def canonical_text(side: Operand, other: Operand) -> Column:
    """The values of one side as canonical texts, for the comparison with the other side."""
    if "csv" in (side.origin, other.origin) and SEVERAL_KINDS in (side.family, other.family):
        return _of_csv_field(side, other)
    if side.variant is not None and side.family in _PER_VALUE:
        return _of_variant(side.variant, other)
    if side.family in ("text", "nothing"):
        return _of_text(side, other)
    if side.family == "floating-point":
        bits = 32 if isinstance(side.type, FloatType) else 64
        return F.concat(F.lit("n:"), canonical_number(numeral(side.value, bits=bits)))
    if side.family == "number":
        return F.concat(F.lit("n:"), canonical_number(side.value.cast("string")))
    if side.family == "boolean":
        return F.concat(F.lit("b:"), side.value.cast("string"))
    if side.family == "date":
        return F.concat(F.lit("d:"), side.value.cast("string"))
    if side.family == "timestamp":
        return F.concat(F.lit("t:"), F.unix_micros(side.value).cast("string"))
    if side.family == SEVERAL_KINDS:
        return _of_variant(side.value, other)
    if side.origin == "json":  # an expression over fields
        return _of_variant(F.parse_json(exact_json(json_text(side.value))), other)
    kind = side.type if other.origin == "json" else with_width_of(side.type, other.type, WIDEN)
    return nested_text(side.value if kind == side.type else side.value.cast(kind), kind)


_PER_VALUE = ("floating-point", SEVERAL_KINDS, OBJECT_OR_LIST)
"""Families of JSON fields whose values may be more exact than their common type."""


def _of_variant(variant: Column, other: Operand) -> Column:
    kind, text = F.schema_of_variant(variant), F.try_variant_get(variant, "$", "string")
    written = numeral_of(variant)
    return (
        F.when(variant.isNull() | (kind == "VOID"), F.lit(None))
        .when(kind == "STRING", _of_time(text, other))
        .when(F.isnotnull(written), F.concat(F.lit("n:"), canonical_number(written)))
        .when(kind == "BOOLEAN", F.concat(F.lit("b:"), text))
        .otherwise(_of_object_or_list(variant, other))
    )


def _of_object_or_list(variant: Column, other: Operand) -> Column:
    """An object or list of JSON; compared with a declared type it is read by that type."""
    if other.family == OBJECT_OR_LIST and other.origin != "json":
        return nested_text_of_json(variant, other.type)
    return F.concat(F.lit("j:"), F.to_json(variant))


def _of_csv_field(side: Operand, other: Operand) -> Column:
    """Values of several kinds compared with a CSV field, where 7 and "7" have one spelling."""
    if side.family == SEVERAL_KINDS:
        variant = side.value if side.variant is None else side.variant
        text = F.try_variant_get(variant, "$", "string")
        is_text = F.schema_of_variant(variant) == "STRING"
        return F.when(is_text, _of_csv_text(text)).otherwise(_of_variant(variant, other))
    return _of_csv_text(side.value.cast("string"))


def _of_csv_text(text: Column) -> Column:
    return (
        F.when(text.rlike(NUMERAL), F.concat(F.lit("n:"), canonical_number(text)))
        .when(text.isin("true", "false"), F.concat(F.lit("b:"), text))
        .otherwise(F.concat(F.lit("s:"), text))
    )


def _of_text(side: Operand, other: Operand) -> Column:
    """Text stays text, except numbers and booleans of CSV, and dates and times of any format."""
    text = side.value.cast("string")
    if other.family in ("date", "timestamp"):
        return _of_time(text, other)
    plain = F.concat(F.lit("s:"), text)
    if side.origin == "csv" and other.family in ("number", "floating-point"):
        number = F.concat(F.lit("n:"), canonical_number(text))
        return F.when(text.rlike(NUMERAL), number).otherwise(plain)
    if side.origin == "csv" and other.family == "boolean":
        return F.when(text.isin("true", "false"), F.concat(F.lit("b:"), text)).otherwise(plain)
    return plain


def _of_time(text: Column, other: Operand) -> Column:
    """Text; compared with a date or a timestamp it is parsed as one."""
    plain = F.concat(F.lit("s:"), text)
    if other.family == "date":
        return F.coalesce(F.concat(F.lit("d:"), parse_date(text).cast("string")), plain)
    if other.family == "timestamp":
        micros = F.unix_micros(parse_timestamp(text)).cast("string")
        return F.coalesce(F.concat(F.lit("t:"), micros), plain)
    return plain


def display_value(text: str | None) -> Any:
    """The value of a canonical text, for display. A fraction that floating point would round stays
    text. A text without a kind is returned unchanged."""
    if text is None or text.startswith(("{", "[")):
        return text
    kind, _, rest = text.partition(":")
    if text.startswith(NESTED_MARK):
        return json.dumps(_display_nested(json.loads(rest)), ensure_ascii=False)
    if kind == "n":
        return _number_of(rest)
    if kind == "t":
        return _moment_of(int(rest))
    return rest == "true" if kind == "b" else rest


def _display_nested(value: Any) -> Any:
    if isinstance(value, dict):
        return {_display_name(name): _display_nested(field) for name, field in value.items()}
    if isinstance(value, list):
        return [_display_nested(element) for element in value]
    is_json = isinstance(value, str) and value.startswith("j:")
    return json.loads(value[2:]) if is_json else display_value(value)


def _display_name(name: str) -> str:
    """The name of a field; a key that its map has again shows its place there."""
    kind, _, rest = name.partition(":")
    if kind.startswith(REPEATED_MARK):
        return f"{display_value(rest)} (again, at {kind.removeprefix(REPEATED_MARK)})"
    return str(display_value(name))


def _moment_of(micros: int) -> str:
    try:
        return (EPOCH + timedelta(microseconds=micros)).isoformat()
    except OverflowError:  # a year beyond the limits of Python
        return f"{micros} µs since 1970"


def _number_of(digits: str) -> Any:
    """A number written out, unless it would be very long."""
    try:
        value = Decimal(digits)
    except ArithmeticError:
        return digits
    if not value.is_finite() or abs(value.adjusted()) >= MAX_DIGITS_SHOWN:
        return digits
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else f"{value:f}"
