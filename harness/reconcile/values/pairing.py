"""Pairs the operands of both sides. These rules define which values are equal.

- Numbers are equal when they are the same number: 1, 1.0, 1e0 and 1.00, exactly and of any size. A
  floating-point value is the number of its shortest numeral in its type: 0.1. Compared with
  floating point of another width it is its exact value, so 0.1 of 32 bits is not 0.1 of 64.
- Text equals the same text: nothing is trimmed, folded or normalised.
- A CSV field is text. Compared with numbers it is read as a JSON number (7, not 007), with booleans
  as true or false, with dates and timestamps as ISO 8601. Texts of JSON and Parquet are parsed only
  when compared with dates and timestamps. Compared with a JSON field that has values of several
  kinds, 7 and "7" are the same CSV field.
- Null equals null. A missing field of a JSON object is not null, and equals only a missing field.
  Compared with Parquet and CSV, which have no missing fields, it is null.
- Each JSON value has its own kind, and values of different kinds differ: "7" is not 7. Columns with
  declared types of different kinds cannot be compared: that is bad input.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from streamquake.harness.reconcile.values.canonical import canonical_text
from streamquake.harness.reconcile.values.operand import OBJECT_OR_LIST, SEVERAL_KINDS, Operand
from streamquake.topologies.problems import BadInput, bad_input

DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
MAX_DIGITS = 38
NUMBERS = ("number", "floating-point")
TIMES = ("date", "timestamp")
JSON_KINDS = (
    "text",
    "number",
    "floating-point",
    "boolean",
    SEVERAL_KINDS,
    OBJECT_OR_LIST,
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One expression over both sides, in columns of one type. `is_canonical`: the columns are
    canonical texts."""

    expected: Column
    actual: Column
    is_canonical: bool = False
    missing: tuple[Column, Column] | None = None
    mismatch: str = ""
    """A message why no two values can be equal; empty where they can."""


def pair_operands(expected: Operand, actual: Operand, text: str, option: str) -> Pair:
    """Bring two operands to one type. Raises BadInput for types that cannot be compared."""
    missing = None
    if expected.missing is not None and actual.missing is not None:
        missing = expected.missing, actual.missing
    kind = _common_type(expected, actual)
    if kind is not None:
        return Pair(
            expected=expected.value.cast(kind), actual=actual.value.cast(kind), missing=missing
        )
    if not _are_comparable(expected, actual):
        raise _incomparable_error(expected, actual, text, option)
    return Pair(
        expected=canonical_text(expected, actual),
        actual=canonical_text(actual, expected),
        is_canonical=True,
        missing=missing,
        mismatch=_mismatch_message(expected, actual, text),
    )


def _common_type(one: Operand, other: Operand) -> DataType | None:
    """A type that holds the values of both exactly and compares them by the rules; None if none
    does."""
    if one.family == other.family == "number":
        return _common_number(one.type, other.type)
    if one.family == other.family == "nothing":
        return StringType()
    from_json = one.variant is not None or other.variant is not None
    if {type(one.type), type(other.type)} == {FloatType, DoubleType} and not from_json:
        return DoubleType()  # exact: each number of 32 bits is one of 64
    exact = {one.family, other.family}.isdisjoint((SEVERAL_KINDS, OBJECT_OR_LIST))
    if one.type == other.type and exact:
        return None if one.family == "floating-point" and from_json else one.type
    if "nothing" in (one.family, other.family) and exact:
        return other.type if one.family == "nothing" else one.type
    return None


def _common_number(one: DataType, other: DataType) -> DataType | None:
    if one == other:
        return one
    (digits, scale), (others, other_scale) = _size(one), _size(other)
    wide = max(scale, other_scale)
    needed = max(digits - scale, others - other_scale) + wide
    return DecimalType(needed, wide) if needed <= MAX_DIGITS else None


def _size(kind: DataType) -> tuple[int, int]:
    if isinstance(kind, DecimalType):
        return kind.precision, kind.scale
    return DIGITS[type(kind)], 0


def _are_comparable(one: Operand, other: Operand) -> bool:
    families = {one.family, other.family}
    if "nothing" in families or len(families) == 1 or families <= set(NUMBERS):
        return len(families) > 1 or one.family in JSON_KINDS
    if SEVERAL_KINDS in families and "json" in (one.origin, other.origin) and families & set(TIMES):
        return True
    if "text" in families:
        text, rest = (one, other) if one.family == "text" else (other, one)
        if rest.family in TIMES:
            return True
        if text.origin == "csv" and rest.family in (*NUMBERS, "boolean"):
            return True
        if text.origin == "csv":
            return rest.family == SEVERAL_KINDS
    return "json" in (one.origin, other.origin) and families <= set(JSON_KINDS)


def _mismatch_message(one: Operand, other: Operand, text: str) -> str:
    """A message where both columns have values of one kind, and of different kinds."""
    families = {one.family, other.family}
    several = {"nothing", SEVERAL_KINDS, *TIMES}
    is_read_by_other = "csv" in (one.origin, other.origin) or families <= set(NUMBERS)
    if len(families) == 1 or families & several or is_read_by_other:
        return ""
    return (
        f"`{text}` is {one.family} on the expected side and {other.family} on the actual, so no "
        "record of one is a record of the other; if they are to be compared, CAST one of them"
    )


def _incomparable_error(one: Operand, other: Operand, text: str, option: str) -> BadInput:
    message = (
        f"`{text}` cannot be compared: it is {one.type.simpleString()} on the expected side and "
        f"{other.type.simpleString()} on the actual; CAST one of them"
    )
    return bad_input(option, message)
