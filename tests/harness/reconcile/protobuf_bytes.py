"""Encodes Protobuf by its specification, without the library that the tests read it with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

VARINT, BYTES = 0, 2


def number(value: int) -> bytes:
    """A varint, seven bits in each byte; negative numbers as 64 bits."""
    rest, encoded = value % 2**64, b""
    while rest >= 128:
        encoded, rest = encoded + bytes([rest & 127 | 128]), rest >> 7
    return encoded + bytes([rest])


def integer(field: int, value: int) -> bytes:
    return number(field << 3 | VARINT) + number(value)


def text(field: int, value: bytes) -> bytes:
    """A text, some bytes or a message."""
    return number(field << 3 | BYTES) + number(len(value)) + value


def with_header(value: bytes, steps: bytes = b"\0") -> bytes:
    """A value with the header of Confluent's wire format, of the first message of its file."""
    return b"\0\0\0\0\7" + steps + value


FIELDS = {
    "id": FieldDescriptorProto.TYPE_INT64,
    "text": FieldDescriptorProto.TYPE_STRING,
    "u": FieldDescriptorProto.TYPE_UINT64,
    "order": FieldDescriptorProto.TYPE_UINT32,
}


def write_descriptors(path: Path, *messages: str, fields: Mapping[str, int] = FIELDS) -> Path:
    """Write the descriptors as `protoc` does, of a file whose messages all have these optional
    fields."""
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    for name in messages:
        message = file.message_type.add(name=name)
        for index, (field, kind) in enumerate(fields.items()):
            own_type = f".shop.{name}" if kind == FieldDescriptorProto.TYPE_MESSAGE else None
            message.field.add(
                name=field,
                number=index + 1,
                type=kind,
                type_name=own_type,
                proto3_optional=own_type is None,
                label=FieldDescriptorProto.LABEL_OPTIONAL,
                oneof_index=None if own_type else len(message.oneof_decl),
            )
            if own_type is None:
                message.oneof_decl.add(name=f"_{field}")
    path.write_bytes(text(1, file.SerializeToString()))
    return path
