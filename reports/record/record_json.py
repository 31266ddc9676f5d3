"""JSON of records, which may be cut off, damaged, or from an untrusted source."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 100


def loads(text: str) -> Any:
    """The value of a JSON text. Raises ValueError for a text that is not JSON, is nested deeper
    than any record, or has a number too long to be read."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    if text.count("[") + text.count("{") > DEEPEST and _is_deep(value):
        raise ValueError(_TOO_DEEP)
    return value


def is_schema(held: Any, number: int) -> bool:
    """Whether a document's schema is the integer `number`; true and 1.0 are not 1."""
    return type(held) is int and held == number


_TOO_DEEP = f"expected at most {DEEPEST} levels of nesting, got more"


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [child for each in level for child in _children(each)]
    return bool(level)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
