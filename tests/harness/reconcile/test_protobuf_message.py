"""Protobuf messages by their descriptors: their types for Spark, and their decoded values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from streamquake.harness.reconcile.reading.protobuf_message import decoder, protobuf_message
from tests.harness.reconcile.protobuf_bytes import integer, text, with_header

Kind = FieldDescriptorProto
U64, U32, STRING = Kind.TYPE_UINT64, Kind.TYPE_UINT32, Kind.TYPE_STRING


def add_field(
    message: DescriptorProto, name: str, kind: int, of: str = "", many: bool = False
) -> None:
    label = Kind.LABEL_REPEATED if many else Kind.LABEL_OPTIONAL
    number = len(message.field) + 1
    message.field.add(name=name, number=number, type=kind, label=label, type_name=of or None)


def add_map_field(message: DescriptorProto, name: str, key: int) -> None:
    """Add a map whose values are unsigned numbers, as `protoc` describes it."""
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    add_field(entry, "key", key)
    add_field(entry, "value", U64)
    add_field(message, name, Kind.TYPE_MESSAGE, f".{message.name}.{entry.name}", many=True)


def descriptors_of(*names: str, package: str = "") -> bytes:
    """The descriptors that `protoc` writes for a file of such messages, after those of an imported
    file."""
    lines = FileDescriptorProto(name="line.proto", package="parts", syntax="proto3")
    add_field(line := lines.message_type.add(name="Line"), "pieces", U32)
    add_field(line, "note", STRING)
    file = FileDescriptorProto(name="order.proto", syntax="proto3", dependency=["line.proto"])
    file.package = package
    for name in names:
        order = file.message_type.add(name=name)
        add_field(order, "id", U64)
        add_field(order, "counts", U32, many=True)
        add_field(order, "line", Kind.TYPE_MESSAGE, ".parts.Line")
        add_field(order, "lines", Kind.TYPE_MESSAGE, ".parts.Line", many=True)
        if not package:
            add_map_field(order, "stock", U32)
            add_map_field(order, "named", STRING)
    return b"".join(text(1, part.SerializeToString()) for part in (lines, file))


def decode_values(values: Sequence[bytes | None], *, behind_header: bool = False) -> list[Any]:
    message = protobuf_message(descriptors_of("Order"), None)
    decoded_array = decoder(message, framed=behind_header)(pa.array(values, pa.binary()))
    assert decoded_array.type == message.arrow_type
    return list(decoded_array.to_pylist())


BARE = {"id": Decimal(0), "counts": [], "line": None, "lines": [], "stock": [], "named": []}


def test_unsigned_numbers_become_wider_at_every_level() -> None:
    line = pa.struct([pa.field("pieces", pa.int64(), False), pa.field("note", pa.string(), False)])
    kind = protobuf_message(descriptors_of("Order"), None).arrow_type
    types = {field.name: field.type for field in kind}

    assert (types["id"], types["line"]) == (pa.decimal128(20, 0), line)
    assert (types["counts"].value_type, types["lines"].value_type) == (
        pa.int64(),
        line,
    )
    maps = [(types[name].key_type, types[name].item_type) for name in ("stock", "named")]
    assert maps == [(pa.int64(), pa.decimal128(20, 0)), (pa.string(), pa.decimal128(20, 0))]


def test_the_largest_numbers_are_exact_at_every_level() -> None:
    top64, top32 = 2**64 - 1, 2**32 - 1
    line = integer(1, top32) + text(2, b"x")
    shelf = integer(1, top32) + integer(2, top64)
    value = b"".join(
        (
            integer(1, top64),
            integer(2, 7),
            integer(2, top32),
            text(3, line),
            text(4, line),
            text(4, b""),
            text(5, shelf),
            text(6, text(1, b"k") + integer(2, top64)),
        )
    )

    assert decode_values([value]) == [
        {
            "id": Decimal(top64),
            "counts": [7, top32],
            "line": {"pieces": top32, "note": "x"},
            "lines": [{"pieces": top32, "note": "x"}, {"pieces": 0, "note": ""}],
            "stock": [(top32, Decimal(top64))],
            "named": [("k", Decimal(top64))],
        }
    ]


def test_malformed_and_missing_values_are_null_at_their_index() -> None:
    values = [integer(1, 3), None, b"\xff" * 11, b"", integer(1, 4)]

    assert decode_values([]) == []
    assert decode_values(values) == [{**BARE, "id": 3}, None, None, BARE, {**BARE, "id": 4}]


@pytest.mark.parametrize(
    ("value", "expected_id"),
    [
        (with_header(integer(1, 3)), 3),
        (with_header(b""), 0),  # an empty message after its header
        (with_header(integer(1, 3), steps=b"\4\0\2"), 3),  # a path of two steps
        (
            with_header(integer(1, 3), steps=b"\2\xac\2"),
            3,
        ),  # a path of one step, whose number has two bytes
        (
            with_header(integer(1, 3), steps=b"\x82\1" + b"\0" * 65),
            3,
        ),  # a path of 65 steps, a number of two bytes
        (b"\1" + with_header(integer(1, 3))[1:], None),  # the header does not begin with a zero
        (with_header(integer(1, 3), steps=b"\1"), None),  # a negative number of steps
        (b"\0\0\0\0\7", None),
        (b"\0\0", None),
        (b"", None),
        (None, None),
        (with_header(b"", steps=b"\4\0"), None),  # the second step is missing
        (with_header(b"", steps=b"\4\0\x80"), None),  # the number of the second step does not end
        (with_header(b"", steps=b"\x80"), None),
    ],
)
def test_the_header_of_a_value_is_skipped(value: bytes | None, expected_id: int | None) -> None:
    (message,) = decode_values([value], behind_header=True)

    assert message == (None if expected_id is None else {**BARE, "id": expected_id})


def test_the_name_of_a_message_includes_its_package() -> None:
    assert protobuf_message(descriptors_of("Order"), None).name == "Order"
    assert protobuf_message(descriptors_of("Order", package="shop"), None).name == "shop.Order"
    message = (
        "it does not describe exactly one message; name one, such as `message: NAME`; "
        "known: shop.Item, shop.Order"
    )
    with pytest.raises(ValueError) as raised:
        protobuf_message(descriptors_of("Order", "Item", package="shop"), None)
    assert str(raised.value) == message


def test_an_unknown_message_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ValueError) as raised:
        protobuf_message(descriptors_of("Order", "Item"), "")
    assert str(raised.value) == 'no message is called ""; known: Item, Order'
