"""One JSON record, read as RFC 8259 has it, and written again so that Spark reads it exactly.

A variant holds whole numbers and fractions of 38 digits exactly and takes every other numeral for
floating point, exponents among them. So each numeral is written out where 38 digits are enough,
and otherwise left as floating point only where that says exactly the same number.

What is no single object is no record: two objects, anything but white space behind one, a name
twice in an object, NaN, comments, single quotes, half of a surrogate pair, bytes that are no UTF-8.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Collection
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, NoReturn

import pyarrow as pa

_FLOATING = re.compile(r'(?<!\\)"([ef]):([^"]*)"')
"""A floating-point value of 32 or 64 bits in a text of `nested.py`. Nothing within its texts begins
so: a quote stands behind a backslash there."""
MAX_DIGITS = 38
"""Digits that Spark's decimals hold."""
FLOATING_DIGITS = 17
"""More are written of decimals alone."""


class WrittenNumber(str):
    """A number as it was written."""


def exact_record(line: bytes, names: Collection[str]) -> str | None:
    """The fields `names` of a record as JSON text; None for what is no record, and for a number of
    these fields that cannot be held exactly."""
    try:
        text = line.decode()
        record = _decoder.decode(text.strip(" \t\r\n"))
        if "\\u" in text:
            json.dumps(record, ensure_ascii=False).encode()  # half of a surrogate pair has no UTF-8
        if not isinstance(record, dict):
            return None
        requested = {name: value for name, value in record.items() if name in names}
        return _serialized(requested, _numeral)
    except (ValueError, RecursionError):
        return None


def exact_value(text: str) -> str:
    """JSON that Spark wrote, with its numbers written as `exact_record` writes them."""
    return _serialized(_decoder.decode(text), _numeral_of_spark)


def record_rewriter(names: Collection[str]) -> Callable[[pa.Array], pa.Array]:
    """`exact_record` for a batch of lines in bytes; null for null."""

    def rewritten(lines: pa.Array) -> pa.Array:
        found = (None if line is None else exact_record(line, names) for line in lines.to_pylist())
        return pa.array(found, pa.string())

    return rewritten


def rewrite_values(texts: pa.Array) -> pa.Array:
    """`exact_value` for a batch of texts; null for null."""
    found = (None if text is None else exact_value(text) for text in texts.to_pylist())
    return pa.array(found, pa.string())


def rewrite_floating(texts: pa.Array) -> pa.Array:
    """Texts of `nested.py`, in which each floating-point value is a number as others are there."""
    found = (None if text is None else _FLOATING.sub(_floating, text) for text in texts.to_pylist())
    return pa.array(found, pa.string())


def shortest_numerals(values: pa.Array) -> pa.Array:
    """The shortest numerals of 64-bit floating-point values; null for null."""
    return pa.array(map(_shortest, values.to_pylist()), pa.string())


def shortest_numerals_of_32_bits(values: pa.Array) -> pa.Array:
    """The shortest numerals that 32 bits tell apart, of values that 32 bits hold."""
    return pa.array(map(_shortest_of_32_bits, values.to_pylist()), pa.string())


def _shortest(value: float | None) -> str | None:
    if value is None or isfinite(value):
        return None if value is None else repr(value)
    return "NaN" if value != value else f"{'-' if value < 0 else ''}Infinity"


def _shortest_of_32_bits(value: float | None) -> str | None:
    if value is None or not isfinite(value):
        return _shortest(value)
    numerals = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next(text for text in numerals if _of_32_bits(float(text)) == value)


def _of_32_bits(value: float) -> float | None:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:  # a short form of the largest values is larger than all of them
        return None


def _floating(found: re.Match[str]) -> str:
    value: float | None = float(found[2])
    if found[1] == "e":
        value = _of_32_bits(float(found[2]))
    text = _shortest(value) if found[1] == "f" else _shortest_of_32_bits(value)
    if value is None or not isfinite(value):
        return f'"n:{text}"'
    sign, digits, power = Decimal(str(text)).as_tuple()
    assert isinstance(power, int)
    figures = "".join(map(str, digits)).lstrip("0")
    kept = figures.rstrip("0")
    number = f"{'-' * sign}{kept}e{power + len(figures) - len(kept)}" if kept else "0"
    return f'"n:{number}"'


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a name stands twice")
    return record


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


_decoder = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_float=WrittenNumber,
    parse_int=WrittenNumber,
    parse_constant=_no_number,
)


def _serialized(value: Any, numeral: Callable[[str], str]) -> str:
    if isinstance(value, WrittenNumber):
        return numeral(value)
    if isinstance(value, dict):
        fields = (f"{_text(name)}:{_serialized(each, numeral)}" for name, each in value.items())
        return f"{{{','.join(fields)}}}"
    if isinstance(value, list):
        return f"[{','.join(_serialized(each, numeral) for each in value)}]"
    return _text(value)


def _text(value: str | bool | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _numeral(text: str) -> str:
    """A numeral that Spark reads as exactly this number. Raises ValueError where there is none."""
    number = _decimal(text)
    if (written := _plain_numeral(number)) is not None:
        return written
    near = float(text)
    if isfinite(near) and Decimal(repr(near)) == number:
        return repr(near)
    raise ValueError(f"{text} is no number that can be held exactly")


def _numeral_of_spark(text: str) -> str:
    if "E" in text and len(_decimal(text).as_tuple().digits) <= FLOATING_DIGITS:
        # Spark leaves this to the JVM, which before Java 19 writes 1e23 as 9.999999999999999E22.
        text = repr(float(text))
    return _plain_numeral(_decimal(text)) or repr(float(text))


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:  # an exponent beyond what Python counts
        raise ValueError(text) from error


def _plain_numeral(number: Decimal) -> str | None:
    """A number without exponent and without zeros at its end; None where that is too long."""
    if not number:
        return "0"
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).lstrip("0")
    kept = figures.rstrip("0")
    exponent += len(figures) - len(kept)
    if max(len(kept) + exponent, 0) + max(-exponent, 0) > MAX_DIGITS:
        return None
    return format(Decimal((sign, tuple(map(int, kept)), exponent)), "f")
