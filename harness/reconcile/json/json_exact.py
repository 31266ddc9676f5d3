"""Parses one JSON record by RFC 8259, and writes it again so that Spark reads it exactly.

A variant holds whole numbers and fractions of 38 digits exactly. It reads every other numeral, such
as one with an exponent, as floating point. So each numeral is written in full where 38 digits
suffice. Otherwise it stays floating point, and only where that is exactly the same number.

A line that is not exactly one object is malformed: two objects, anything but white space after one,
a name twice in an object, NaN, comments, single quotes, half of a surrogate pair, bytes that are no
UTF-8.
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
"""A floating-point value of 32 or 64 bits in a text of `nested.py`. Strings in it cannot match:
their quotes have a backslash."""
MAX_DIGITS = 38
"""Digits of Spark's largest decimal."""
FLOATING_DIGITS = 17
"""Digits of the longest floating-point numeral; only decimals have more."""


class WrittenNumber(str):
    """A number of JSON in its original spelling."""


def exact_record(line: bytes, names: Collection[str]) -> str | None:
    """The fields `names` of a record as JSON text; None for a malformed line, and where a number in
    these fields has no exact value."""
    try:
        text = line.decode()
        record = _decoder.decode(text.strip(" \t\r\n"))
        if "\\u" in text:
            json.dumps(record, ensure_ascii=False).encode()  # half of a surrogate pair has no UTF-8
        if not isinstance(record, dict):
            return None
        requested = {name: value for name, value in record.items() if name in names}
        return _serialize(requested, _numeral)
    except (ValueError, RecursionError):
        return None


def exact_value(text: str) -> str:
    """JSON that Spark wrote, with its numbers in the form of `exact_record`. A map that another
    writer wrote may have a key twice, and has it twice here."""
    return _serialize(_decoder_of_spark.decode(text), _numeral_of_spark)


def record_rewriter(names: Collection[str]) -> Callable[[pa.Array], pa.Array]:
    """`exact_record` for a batch of lines in bytes; null for null."""

    def rewrite(lines: pa.Array) -> pa.Array:
        rewritten = (
            None if line is None else exact_record(line, names) for line in lines.to_pylist()
        )
        return pa.array(rewritten, pa.string())

    return rewrite


def rewrite_values(texts: pa.Array) -> pa.Array:
    """`exact_value` for a batch of texts; null for null."""
    rewritten = (None if text is None else exact_value(text) for text in texts.to_pylist())
    return pa.array(rewritten, pa.string())


def rewrite_floating(texts: pa.Array) -> pa.Array:
    """Texts of `nested.py`, with each floating-point value in the form of the other numbers."""
    rewritten = (
        None if text is None else _FLOATING.sub(_floating, text) for text in texts.to_pylist()
    )
    return pa.array(rewritten, pa.string())


def shortest_numerals(values: pa.Array) -> pa.Array:
    """The shortest numerals of 64-bit floating-point values; null for null."""
    return pa.array(map(_shortest, values.to_pylist()), pa.string())


def shortest_numerals_of_32_bits(values: pa.Array) -> pa.Array:
    """The shortest numerals of 32-bit floating-point values; null for null."""
    return pa.array(map(_shortest_of_32_bits, values.to_pylist()), pa.string())


def _shortest(value: float | None) -> str | None:
    if value is None or isfinite(value):
        return None if value is None else repr(value)
    return "NaN" if value != value else f"{'-' if value < 0 else ''}Infinity"


def _shortest_of_32_bits(value: float | None) -> str | None:
    if value is None or not isfinite(value):
        return _shortest(value)
    numerals = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next(text for text in numerals if _round_to_32_bits(float(text)) == value)


def _round_to_32_bits(value: float) -> float | None:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:  # a short numeral of the largest value may be too large
        return None


def _floating(match: re.Match[str]) -> str:
    value: float | None = float(match[2])
    if match[1] == "e":
        value = _round_to_32_bits(float(match[2]))
    text = _shortest(value) if match[1] == "f" else _shortest_of_32_bits(value)
    if value is None or not isfinite(value):
        return f'"n:{text}"'
    sign, digits, power = Decimal(str(text)).as_tuple()
    assert isinstance(power, int)
    figures = "".join(map(str, digits)).lstrip("0")
    significant = figures.rstrip("0")
    number = (
        f"{'-' * sign}{significant}e{power + len(figures) - len(significant)}"
        if significant
        else "0"
    )
    return f'"n:{number}"'


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a name is used twice")
    return record


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _decoder_with(objects: Callable[[list[tuple[str, Any]]], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=objects,
        parse_float=WrittenNumber,
        parse_int=WrittenNumber,
        parse_constant=_reject_constant,
    )


_decoder = _decoder_with(_unique_names)
_decoder_of_spark = _decoder_with(tuple)


def _serialize(value: Any, numeral: Callable[[str], str]) -> str:
    if isinstance(value, WrittenNumber):
        return numeral(value)
    if isinstance(value, (dict, tuple)):
        pairs = value.items() if isinstance(value, dict) else value
        fields = (f"{_text(name)}:{_serialize(field, numeral)}" for name, field in pairs)
        return f"{{{','.join(fields)}}}"
    if isinstance(value, list):
        return f"[{','.join(_serialize(each, numeral) for each in value)}]"
    return _text(value)


def _text(value: str | bool | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _numeral(text: str) -> str:
    """A numeral that Spark reads as exactly this number. Raises ValueError where none exists."""
    number = _decimal(text)
    if (written := _plain_numeral(number)) is not None:
        return written
    nearest = float(text)
    if isfinite(nearest) and Decimal(repr(nearest)) == number:
        return repr(nearest)
    raise ValueError(f"{text} has no exact value")


def _numeral_of_spark(text: str) -> str:
    if "E" in text and len(_decimal(text).as_tuple().digits) <= FLOATING_DIGITS:
        # Spark uses the JVM, which before Java 19 writes 1e23 as 9.999999999999999E22.
        text = repr(float(text))
    return _plain_numeral(_decimal(text)) or repr(float(text))


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:  # an exponent too large for Python
        raise ValueError(text) from error


def _plain_numeral(number: Decimal) -> str | None:
    """A number without exponent and trailing zeros; None where it has too many digits."""
    if not number:
        return "0"
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).lstrip("0")
    significant = figures.rstrip("0")
    exponent += len(figures) - len(significant)
    if max(len(significant) + exponent, 0) + max(-exponent, 0) > MAX_DIGITS:
        return None
    return format(Decimal((sign, tuple(map(int, significant)), exponent)), "f")
