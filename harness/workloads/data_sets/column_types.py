"""The types of the columns of a data set, and whether its values fit them.

Every value of a column must be exactly representable in the column's type: a value that Spark would
round, or read as null, would make a correct output look changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from streamquake.harness.workloads.data_sets.json_line import json_text

_DECIMAL = re.compile(r"DECIMAL\(([0-9]{1,2}), ?([0-9]{1,2})\)")
MAX_DIGITS = 38
JSON = "JSON"
"""The type of objects, lists and values of several kinds: the text of their JSON."""
TYPES: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "JSON": pa.string(),
}
EXACT = Context(prec=1 << 20)
"""More digits than a line of a data set has."""
WRITTEN = f"{', '.join(TYPES)} or DECIMAL(digits, fraction)"


def arrow_type(name: str) -> pa.DataType:
    """The type with this name in SQL. Raises ValueError for another one."""
    if (known := TYPES.get(name)) is not None:
        return known
    if (match := _DECIMAL.fullmatch(name)) is not None:
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= MAX_DIGITS and scale <= precision:
            return pa.decimal128(precision, scale)
    raise ValueError(f'expected {WRITTEN}, got "{name}"')


def type_of(value: Any) -> str:
    """The narrowest type for one value, as `json` reads it with fractions as Decimal. What no other
    type represents exactly is the text of its JSON."""
    if isinstance(value, str):
        return "STRING"
    # A column of whole numbers beyond 64 bits is no column of fractions.
    kinds = ("BOOLEAN", "BIGINT", JSON) if isinstance(value, int) else ("DOUBLE", JSON)
    return next(kind for kind in kinds if _fits(kind, value))


def common_type(one: str, other: str) -> str:
    """The type for values of both types."""
    if one == other:
        return one
    return "DOUBLE" if {one, other} == {"BIGINT", "DOUBLE"} else JSON


def fits(kind: str, value: Any) -> bool:
    """Whether a value is exactly representable in a type; a missing one is in every type."""
    return value is None or _fits(kind, value)


def _fits(kind: str, value: Any) -> bool:
    if kind == JSON:
        return True
    if kind == "STRING":
        return isinstance(value, str)
    if kind == "BOOLEAN" or isinstance(value, bool):
        return kind == "BOOLEAN" and isinstance(value, bool)
    if not isinstance(value, int | Decimal):
        return False
    if kind in _WHOLE:
        return isinstance(value, int) and -(1 << _WHOLE[kind]) <= value < 1 << _WHOLE[kind]
    if kind == "DOUBLE":
        return _is_exact_double(value)
    return _fits_decimal(arrow_type(kind), Decimal(value))


def stored(kind: str, value: Any) -> Any:
    """A value that fits a type, as Arrow stores it."""
    if value is None or kind in ("BOOLEAN", "STRING", *_WHOLE):
        return value
    if kind == JSON:
        return json_text(value)
    return float(value) if kind == "DOUBLE" else Decimal(value).normalize(EXACT)


_WHOLE = {"INT": 31, "BIGINT": 63}
"""Bits of the largest value of a type."""


def _is_exact_double(value: int | Decimal) -> bool:
    """Whether the value is a numeral of a double as programs write them: the shortest one, one with
    17 digits, or all digits."""
    try:
        double = float(value)
    except OverflowError:
        return False
    return value in (Decimal(repr(double)), Decimal(f"{double:.17g}"), Decimal(double))


def _fits_decimal(kind: pa.Decimal128Type, value: Decimal) -> bool:
    if not value:
        return True
    _, digits, exponent = value.normalize(EXACT).as_tuple()
    assert isinstance(exponent, int)
    before_point = max(0, len(digits) + exponent)
    return bool(-exponent <= kind.scale and before_point <= kind.precision - kind.scale)
