"""One line of a data set: a JSON object, with exact numbers."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

MAX_LINE_BYTES = 900_000
"""Brokers accept records of up to a million bytes by default."""
FEW_LEVELS = 50
MAX_EXPONENT = 999
"""Of a number. Doubles end at 308; with millions, Decimal and Arrow fail or take for ever."""
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def record_of(line: bytes) -> dict[str, Any]:
    """The fields of a line, fractions as Decimal. Raises ValueError for any other text, and for
    what cannot be sent or stored: a long line, half of a surrogate pair, a field twice in an
    object, very deep nesting, and numbers with huge exponents."""
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"{len(line):,} bytes; records of up to {MAX_LINE_BYTES:,} are sent")
    try:
        record = value_of(line.decode("utf-8"))
        if line.count(b"[") + line.count(b"{") > FEW_LEVELS:
            _exact_text(record)  # which calls itself for each level, as storing it may do
    except RecursionError as error:
        raise ValueError("expected a JSON object: it is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"expected a JSON object: {error}") from error
    if not isinstance(record, dict):
        raise ValueError(f"expected a JSON object, got {shown(record)}")
    if b"\\ud" in line.lower():
        try:
            json_text(record).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError("half of a surrogate pair is no text") from error
    return record


def value_of(text: str) -> Any:
    """The value of a text of JSON, fractions as Decimal. Raises ValueError, RecursionError."""
    return json.loads(
        text, parse_float=_number, parse_constant=_reject_constant, object_pairs_hook=_object
    )


def json_text(value: Any) -> str:
    """A value as JSON, with all digits of its numbers."""
    try:
        return _encoder.encode(value)
    except TypeError:  # the encoder knows no Decimal
        return _exact_text(value)


def shown(value: Any) -> str:
    """A value as short JSON, for messages."""
    text = json_text(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _exact_text(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(_exact_text, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_exact_text(k)}:{_exact_text(v)}' for k, v in value.items())}}}"
    return _encoder.encode(value)


def _number(text: str) -> Decimal:
    with suppress(InvalidOperation):  # an exponent that Decimal itself does not have
        value = Decimal(text)
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        if max(abs(exponent), abs(value.adjusted())) <= MAX_EXPONENT:
            return value
    short = text if len(text) <= 60 else f"{text[:60]}…"
    raise ValueError(f"the exponent of {short} is beyond {MAX_EXPONENT}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in record if names.count(name) > 1)
        raise ValueError(f'the field "{twice}" is there twice')
    return record


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
