"""Protobuf: the message of a record, by the descriptors that `protoc` writes.

A value must be exactly what its field holds. A field without presence that has no value would be
read as its default, so it must have one; a list must be there, if only an empty one. An enum is the
name or the number of one of its values.

https://protobuf.dev/programming-guides/field_presence/
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from streamquake.harness.reconcile.reading.protobuf_message import protobuf_message
from streamquake.harness.workloads.data_sets.encodings.exact import (
    NotExact,
    floating,
    is_whole,
    within,
)

BITS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), 1 << 31),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), 1 << 63),
    FieldDescriptor.CPPTYPE_UINT32: (0, 1 << 32),
    FieldDescriptor.CPPTYPE_UINT64: (0, 1 << 64),
}
"""Kind of whole number -> the least value, and that after the largest."""
NAMES = {
    FieldDescriptor.CPPTYPE_INT32: "int32",
    FieldDescriptor.CPPTYPE_INT64: "int64",
    FieldDescriptor.CPPTYPE_UINT32: "uint32",
    FieldDescriptor.CPPTYPE_UINT64: "uint64",
    FieldDescriptor.CPPTYPE_DOUBLE: "double",
    FieldDescriptor.CPPTYPE_FLOAT: "float",
    FieldDescriptor.CPPTYPE_BOOL: "bool",
    FieldDescriptor.CPPTYPE_ENUM: "enum",
    FieldDescriptor.CPPTYPE_STRING: "string",
    FieldDescriptor.CPPTYPE_MESSAGE: "message",
}


def protobuf_encoding(text: str, message: str | None) -> Callable[[Mapping[str, Any]], bytes]:
    """Encodes records as this message of the descriptors in `text`, or as the only one. Raises
    ValueError for descriptors that cannot be used."""
    kind = protobuf_message(base64.b64decode(text), message).kind

    def encode(record: Mapping[str, Any]) -> bytes:
        filled = kind()
        _fill(filled, record, "")
        encoded: bytes = filled.SerializeToString(deterministic=True)
        return encoded

    return encode


def incomparable_field(text: str, message: str | None) -> str | None:
    """A field whose values a topic has in another type than the records sent, such as the number of
    an enum; None where there is none. Raises ValueError."""
    fields = protobuf_message(base64.b64decode(text), message).kind.DESCRIPTOR.fields
    simple = set(NAMES) - {FieldDescriptor.CPPTYPE_ENUM, FieldDescriptor.CPPTYPE_MESSAGE}
    return next((f.name for f in fields if f.is_repeated or f.cpp_type not in simple), None)


def _fill(message: Message, record: Mapping[str, Any], place: str) -> None:
    fields = message.DESCRIPTOR.fields_by_name
    if unknown := next((name for name in record if name not in fields), None):
        raise ValueError(f"the schema has no field {within(place, unknown)}")
    for name, field in fields.items():
        _set(message, field, record.get(name), within(place, name))
    for choice in message.DESCRIPTOR.oneofs:
        given = [field.name for field in choice.fields if record.get(field.name) is not None]
        if len(given) > 1:
            raise ValueError(
                f"{place or 'the record'} has {' and '.join(given)}, which exclude "
                f"each other in the schema"
            )


def _set(message: Message, field: FieldDescriptor, value: Any, place: str) -> None:
    if value is None:
        if field.has_presence and not field.is_required:
            return
        raise ValueError(
            f"{place} has no value, which would be read as the default of the schema; give it one, "
            "or make the field optional"
        )
    if field.is_repeated:
        _set_all(getattr(message, field.name), field, value, place)
    elif field.message_type is not None:
        if not isinstance(value, Mapping):
            raise NotExact(value, "message", place)
        getattr(message, field.name).SetInParent()
        _fill(getattr(message, field.name), value, place)
    else:
        setattr(message, field.name, _scalar(field, value, place))


def _set_all(held: Any, field: FieldDescriptor, value: Any, place: str) -> None:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        _set_map(held, kind.fields_by_name, value, place)
        return
    if not isinstance(value, list):
        raise NotExact(value, f"list of {NAMES[field.cpp_type]}", place)
    for number, each in enumerate(value):
        at = f"{place}[{number}]"
        if kind is None:
            held.append(_scalar(field, each, at))
        elif isinstance(each, Mapping):
            _fill(held.add(), each, at)
        else:
            raise NotExact(each, "message", at)


def _set_map(held: Any, parts: Mapping[str, FieldDescriptor], value: Any, place: str) -> None:
    key, of = parts["key"], parts["value"]
    if not isinstance(value, Mapping) or key.cpp_type != FieldDescriptor.CPPTYPE_STRING:
        raise NotExact(value, f"map with keys of {NAMES[key.cpp_type]}", place)
    for name, each in value.items():
        at = within(place, name)
        if of.message_type is None:
            held[name] = _scalar(of, each, at)
        elif isinstance(each, Mapping):
            held[name].SetInParent()
            _fill(held[name], each, at)
        else:
            raise NotExact(each, "message", at)


def _scalar(field: FieldDescriptor, value: Any, place: str) -> Any:
    kind = field.cpp_type
    if kind in BITS and is_whole(value) and BITS[kind][0] <= value < BITS[kind][1]:
        return value
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        single = kind == FieldDescriptor.CPPTYPE_FLOAT
        return floating(value, NAMES[kind], place, single=single)
    if kind == FieldDescriptor.CPPTYPE_BOOL and isinstance(value, bool):
        return value
    if field.type == FieldDescriptor.TYPE_STRING and isinstance(value, str):
        return value
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        if isinstance(value, str) and value in field.enum_type.values_by_name:
            return field.enum_type.values_by_name[value].number
        if is_whole(value) and value in field.enum_type.values_by_number:
            return value
    name = "bytes" if field.type == FieldDescriptor.TYPE_BYTES else NAMES[kind]
    raise NotExact(value, name, place)
