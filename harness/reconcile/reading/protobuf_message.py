"""Protobuf messages by their descriptors: the type of a message in Arrow, and its decoder.

protarrow converts messages to Arrow. Arrow's unsigned numbers become wider signed ones, since Spark
has no unsigned numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import protarrow
import pyarrow as pa
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from streamquake.topologies.problems import did_you_mean

PROTOC_COMMAND = "`protoc --include_imports --descriptor_set_out=FILE`"
NUMBER_BYTES = 5
"""Bytes of the header: a zero, and the schema ID."""
UINT64_DIGITS = 20


@dataclass(frozen=True, kw_only=True)
class ProtobufMessage:
    """A message: its full name, and the descriptors of its file and of the imported files."""

    descriptors: bytes
    name: str

    @property
    def kind(self) -> type[Message]:
        """The class of the message. Raises TypeError where an imported file is missing, KeyError
        where the message is unknown."""
        return _kind(self.descriptors, self.name)

    @property
    def arrow_type(self) -> Any:
        """The type of the message, a struct for Spark. Raises TypeError for a recursive message."""
        return _signed_type(pa.struct(list(protarrow.message_type_to_schema(self.kind))))


def protobuf_message(descriptors: bytes, name: str | None) -> ProtobufMessage:
    """The message of that name, or the only one of the last file (the argument of `protoc`). Raises
    ValueError with advice."""
    try:
        known = _names(descriptors)
        if name is None and len(known) == 1:
            (name,) = known
        if name is None:
            text = "it does not describe exactly one message; name one, such as `message: NAME`"
            raise ValueError(f"{text}{did_you_mean('', known)}")
        message = ProtobufMessage(descriptors=descriptors, name=name)
        if not message.arrow_type.num_fields:
            raise ValueError(f"{name} has no fields")
    except DecodeError as error:
        raise ValueError(f"expected what {PROTOC_COMMAND} writes: {error}") from error
    except TypeError as error:
        raise ValueError(
            f"its descriptors cannot be used: {error}; written by {PROTOC_COMMAND}?"
        ) from error
    except KeyError as error:
        text = f'no message is called "{name}"{did_you_mean(name or "", known)}'
        raise ValueError(text) from error
    return message


def decoder(message: ProtobufMessage, *, framed: bool) -> Callable[[pa.Array], pa.Array]:
    """A function that decodes values to structs; null for a null and for a value that is no such
    message. `framed`: each value has the header of Confluent's wire format."""

    def decode(values: pa.Array) -> pa.Array:
        kind = message.kind
        bodies: Iterable[bytes | None] = values.to_pylist()
        messages = [_decode(_body(body) if framed else body, kind) for body in bodies]
        batch = protarrow.messages_to_record_batch(
            [decoded or kind() for decoded in messages], kind
        )
        absent = pa.array([decoded is None for decoded in messages], pa.bool_())
        struct_array = pa.StructArray.from_arrays(
            batch.columns, fields=list(batch.schema), mask=absent
        )
        return struct_array.cast(message.arrow_type)

    return decode


def _decode(body: bytes | None, kind: type[Message]) -> Message | None:
    try:
        return None if body is None else kind.FromString(body)
    except DecodeError:
        return None


def _body(value: bytes | None) -> bytes | None:
    """The bytes after the header, None where there is no header. The header is a zero, the schema
    ID, and the path of the message in its file: the number of steps and each step, or a single zero
    for the first message."""
    if value is None or value[:1] != b"\0":
        return None
    try:
        steps, rest = _varint(value[NUMBER_BYTES:])
        for _ in range(steps >> 1):
            rest = _varint(rest)[1]
    except EOFError:
        return None
    return None if steps & 1 else rest  # the lowest bit is the sign


def _varint(value: bytes) -> tuple[int, bytes]:
    """The number at the start of some bytes (a varint), and the bytes after it. Raises EOFError
    where the number does not end."""
    number = 0
    for index, byte in enumerate(value):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return number, value[index + 1 :]
    raise EOFError


def _names(descriptors: bytes) -> list[str]:
    """The names of the messages of the last file."""
    files = _files(descriptors)
    if not files:
        return []
    package = f"{files[-1].package}." if files[-1].package else ""
    return [f"{package}{message.name}" for message in files[-1].message_type]


def _files(descriptors: bytes) -> Any:
    return FileDescriptorSet.FromString(descriptors).file


@functools.lru_cache(maxsize=8)
def _kind(descriptors: bytes, name: str) -> type[Message]:
    """The class of a message, created once in each process."""
    pool = DescriptorPool()
    for file in _files(descriptors):
        pool.AddSerializedFile(file.SerializeToString())
    kind: type[Message] = GetMessageClass(pool.FindMessageTypeByName(name))
    return kind


def _signed_type(kind: Any) -> Any:
    """The type with signed numbers instead of unsigned ones."""
    if pa.types.is_uint64(kind):
        return pa.decimal128(UINT64_DIGITS, 0)
    if pa.types.is_uint32(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_signed_type(field.type)) for field in kind.fields])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(
            key.with_type(_signed_type(key.type)), item.with_type(_signed_type(item.type))
        )
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_signed_type(kind.value_type)))
    return kind
