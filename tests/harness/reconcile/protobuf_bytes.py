"""Protobuf written by hand, as its specification says: no library that reads it takes part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

VARINT, BYTES = 0, 2


def number(value: int) -> bytes:
    """Seven bits a byte; negative numbers as 64 bits."""
    rest, found = value % 2**64, b""
    while rest >= 128:
        found, rest = found + bytes([rest & 127 | 128]), rest >> 7
    return found + bytes([rest])


def integer(field: int, value: int) -> bytes:
    return number(field << 3 | VARINT) + number(value)


def text(field: int, value: bytes) -> bytes:
    """A text, some bytes or a message."""
    return number(field << 3 | BYTES) + number(len(value)) + value


def framed(value: bytes, steps: bytes = b"\0") -> bytes:
    """A value with the header of Confluent's wire format, of the first message of its file."""
    return b"\0\0\0\0\7" + steps + value


FIELDS = {
    "id": FieldDescriptorProto.TYPE_INT64,
    "text": FieldDescriptorProto.TYPE_STRING,
    "u": FieldDescriptorProto.TYPE_UINT64,
    "order": FieldDescriptorProto.TYPE_UINT32,
}


def described(path: Path, *messages: str, fields: Mapping[str, int] = FIELDS) -> Path:
    """What `protoc` would write of a file whose messages all have these fields, each optional."""
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    for name in messages:
        message = file.message_type.add(name=name)
        for change, (field, kind) in enumerate(fields.items()):
            own = f".shop.{name}" if kind == FieldDescriptorProto.TYPE_MESSAGE else None
            message.field.add(
                name=field,
                number=change + 1,
                type=kind,
                type_name=own,
                proto3_optional=own is None,
                label=FieldDescriptorProto.LABEL_OPTIONAL,
                oneof_index=None if own else len(message.oneof_decl),
            )
            if own is None:
                message.oneof_decl.add(name=f"_{field}")
    path.write_bytes(text(1, file.SerializeToString()))
    return path
