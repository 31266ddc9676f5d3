"""Values of different types in one form, so that they are equal exactly when they mean the same.

A value becomes a text that begins with its kind: `n:12e2` is the number 1200 however it was written
(digits without zeros at either end, and a power of ten, so any number of digits stays exact),
`s:` text, `b:` true or false, `t:` a moment in microseconds since 1970, `d:` a date, `j:` an object
or list as JSON. `shown` turns such a text into the value again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, FloatType

from streamquake.harness.reconcile.json_record import exact_json, numeral
from streamquake.harness.reconcile.json_text import json_text
from streamquake.harness.reconcile.nested_times import times_in_millis
from streamquake.harness.reconcile.operand import SEVERAL, Operand

NUMERAL = r"^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,9}))?\z"
"""A number as JSON writes it: 007, +7 and .5 are none. Java's `$` would take an end of line too."""
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
MOMENT = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?\z"
)
"""ISO 8601, to the microsecond, which is as far as Spark's timestamps go; without a zone, UTC."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_WRITTEN = 60
"""Digits of a number that are written out."""


def canonical(side: Operand, other: Operand) -> Column:
    """The values of one side, to be compared with the other's, as texts with their kinds."""
    if "csv" in (side.origin, other.origin) and SEVERAL in (side.family, other.family):
        return _of_field(side, other)
    if side.variant is not None and side.family in _PER_VALUE:
        return _of_variant(side.variant, other)
    if side.family in ("text", "nothing"):
        return _of_text(side, other)
    if side.family == "floating-point":
        bits = 32 if isinstance(side.type, FloatType) else 64
        return F.concat(F.lit("n:"), number(numeral(side.value, bits=bits)))
    if side.family == "number":
        return F.concat(F.lit("n:"), number(side.value.cast("string")))
    if side.family == "boolean":
        return F.concat(F.lit("b:"), side.value.cast("string"))
    if side.family == "date":
        return F.concat(F.lit("d:"), side.value.cast("string"))
    if side.family == "timestamp":
        return F.concat(F.lit("t:"), F.unix_micros(side.value).cast("string"))
    if side.family == SEVERAL:
        return _of_variant(side.value, other)
    return nested(side.value, side.type, beside_json=other.origin == "json")


def nested(value: Column, kind: DataType, *, beside_json: bool) -> Column:
    """A struct, list or map whole, with its nulls, names and nesting. Numbers are written as those
    of JSON records are, and beside JSON a time without a part of a millisecond as Spark writes it
    there."""
    whole = F.parse_json(exact_json(json_text(value)))
    if beside_json:
        whole = times_in_millis(whole, kind)
    return F.concat(F.lit("j:"), F.to_json(whole))


_PER_VALUE = ("floating-point", SEVERAL, "object or list")
"""Families of JSON fields whose values say more than their common type keeps."""


def _of_variant(variant: Column, other: Operand) -> Column:
    kind, text = F.schema_of_variant(variant), F.try_variant_get(variant, "$", "string")
    written = numeral_of(variant)
    return (
        F.when(variant.isNull() | (kind == "VOID"), F.lit(None))
        .when(kind == "STRING", _of_time(text, other))
        .when(F.isnotnull(written), F.concat(F.lit("n:"), number(written)))
        .when(kind == "BOOLEAN", F.concat(F.lit("b:"), text))
        .otherwise(F.concat(F.lit("j:"), F.to_json(times_in_millis(variant, other.type))))
    )


def numeral_of(variant: Column) -> Column:
    """A number of JSON as a numeral; null for anything else."""
    kind, text = F.schema_of_variant(variant), F.try_variant_get(variant, "$", "string")
    exact = (kind == "BIGINT") | F.startswith(kind, F.lit("DECIMAL"))
    floating = F.when(kind == "DOUBLE", F.try_variant_get(variant, "$", "double"))
    return F.when(exact, text).otherwise(numeral(floating))


def _of_field(side: Operand, other: Operand) -> Column:
    """Values of several kinds beside a CSV field, as which 7 and "7" are written alike."""
    if side.family == SEVERAL:
        variant = side.value if side.variant is None else side.variant
        text = F.try_variant_get(variant, "$", "string")
        is_text = F.schema_of_variant(variant) == "STRING"
        return F.when(is_text, _as_written(text)).otherwise(_of_variant(variant, other))
    return _as_written(side.value.cast("string"))


def _as_written(text: Column) -> Column:
    return (
        F.when(text.rlike(NUMERAL), F.concat(F.lit("n:"), number(text)))
        .when(text.isin("true", "false"), F.concat(F.lit("b:"), text))
        .otherwise(F.concat(F.lit("s:"), text))
    )


def _of_text(side: Operand, other: Operand) -> Column:
    """Text stays text, but for what CSV writes of numbers and truth, and anyone of time."""
    text = side.value.cast("string")
    if other.family in ("date", "timestamp"):
        return _of_time(text, other)
    plain = F.concat(F.lit("s:"), text)
    if side.origin == "csv" and other.family in ("number", "floating-point"):
        said = F.concat(F.lit("n:"), number(text))
        return F.when(text.rlike(NUMERAL), said).otherwise(plain)
    if side.origin == "csv" and other.family == "boolean":
        return F.when(text.isin("true", "false"), F.concat(F.lit("b:"), text)).otherwise(plain)
    return plain


def _of_time(text: Column, other: Operand) -> Column:
    """Text, which beside a date or a timestamp may be one."""
    plain = F.concat(F.lit("s:"), text)
    if other.family == "date":
        date = _try(text, DATE, "date").cast("string")
        return F.coalesce(F.concat(F.lit("d:"), date), plain)
    if other.family == "timestamp":
        moment = F.unix_micros(_try(text, MOMENT, "timestamp"))
        return F.coalesce(F.concat(F.lit("t:"), moment.cast("string")), plain)
    return plain


def _try(text: Column, pattern: str, kind: str) -> Column:
    return F.when(text.rlike(pattern), text.try_cast(kind))


def number(text: Column) -> Column:
    """A numeral as its digits and a power of ten. Infinities and NaN stay what they are."""
    sign, whole, fraction, power = (F.regexp_extract(text, NUMERAL, n) for n in (1, 2, 3, 4))
    digits = F.ltrim(F.concat(whole, fraction), F.lit("0"))
    kept = F.rtrim(digits, F.lit("0"))
    scale = F.coalesce(power.try_cast("bigint"), F.lit(0)) - F.length(fraction)
    scale = scale + F.length(digits) - F.length(kept)
    said = F.concat(sign, kept, F.lit("e"), scale.cast("string"))
    return F.when(~text.rlike(NUMERAL), text).when(kept == "", F.lit("0")).otherwise(said)


def shown(text: str | None) -> Any:
    """A canonical text as the value it was; a fraction that floating-point would round is text."""
    if text is None:
        return None
    kind, _, rest = text.partition(":")
    if kind == "n":
        return _number_of(rest)
    if kind == "t":
        return _moment_of(int(rest))
    return rest == "true" if kind == "b" else rest


def _moment_of(micros: int) -> str:
    try:
        return (EPOCH + timedelta(microseconds=micros)).isoformat()
    except OverflowError:  # beyond the years that Python knows
        return f"{micros} µs since 1970"


def _number_of(digits: str) -> Any:
    """Written out, unless it would be very long."""
    try:
        value = Decimal(digits)
    except ArithmeticError:
        return digits
    if not value.is_finite() or abs(value.adjusted()) >= MAX_WRITTEN:
        return digits
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else f"{value:f}"
