"""Encodes Avro by its specification, without the library that the tests read it with."""

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
    """A number in zigzag encoding, seven bits in each byte."""
    rest, encoded = (value << 1) ^ (value >> 63), b""
    while rest >= 128:
        encoded, rest = encoded + bytes([rest & 127 | 128]), rest >> 7
    return encoded + bytes([rest])


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def order(id: int, words: str | None, n: int | None = None) -> bytes:
    """A record of `ORDER`, or with `n` one of `WIDER`."""
    value = number(0) if words is None else number(1) + text(words.encode())
    return number(id) + value + (b"" if n is None else number(n))


def with_header(schema: int, value: bytes) -> bytes:
    """A value with the header of Confluent's wire format."""
    return b"\0" + schema.to_bytes(4, "big") + value


def write_avro_file(path: Path, schema: dict[str, Any], values: Sequence[bytes]) -> Path:
    """Write a container file of one block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    meta = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": b"null"}
    head = number(len(meta)) + b"".join(text(name) + text(value) for name, value in meta.items())
    block = b"".join(values)
    path.write_bytes(
        b"Obj\1" + head + number(0) + SYNC + number(len(values)) + number(len(block)) + block + SYNC
    )
    return path
