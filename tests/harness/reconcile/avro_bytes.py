"""Avro written by hand, as its specification says: no library that reads it has a part in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "text", "type": ["null", "string"]}],
}
WIDER: dict[str, Any] = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "n", "type": "int", "default": 7}],
}
SYNC = bytes(range(16))


def number(value: int) -> bytes:
    """Zigzag, seven bits a byte."""
    rest, found = (value << 1) ^ (value >> 63), b""
    while rest >= 128:
        found, rest = found + bytes([rest & 127 | 128]), rest >> 7
    return found + bytes([rest])


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def order(id: int, words: str | None, n: int | None = None) -> bytes:
    """A record of `ORDER`, or with `n` one of `WIDER`."""
    message = number(0) if words is None else number(1) + text(words.encode())
    return number(id) + message + (b"" if n is None else number(n))


def framed(schema: int, value: bytes) -> bytes:
    """A value with the header of Confluent's wire format."""
    return b"\0" + schema.to_bytes(4, "big") + value


def container(path: Path, schema: dict[str, Any], values: Sequence[bytes]) -> Path:
    """A file of one block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    meta = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": b"null"}
    head = number(len(meta)) + b"".join(
        text(name) + text(message) for name, message in meta.items()
    )
    block = b"".join(values)
    path.write_bytes(
        b"Obj\1" + head + number(0) + SYNC + number(len(values)) + number(len(block)) + block + SYNC
    )
    return path
