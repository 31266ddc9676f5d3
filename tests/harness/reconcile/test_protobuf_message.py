"""A message of Protobuf by its descriptors: the type it has for Spark, and its values decoded."""

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
from tests.harness.reconcile.protobuf_bytes import framed, integer, text

Kind = FieldDescriptorProto
U64, U32, STRING = Kind.TYPE_UINT64, Kind.TYPE_UINT32, Kind.TYPE_STRING


def has(message: DescriptorProto, name: str, kind: int, of: str = "", many: bool = False) -> None:
    label = Kind.LABEL_REPEATED if many else Kind.LABEL_OPTIONAL
    number = len(message.field) + 1
    message.field.add(name=name, number=number, type=kind, label=label, type_name=of or None)


def has_map(message: DescriptorProto, name: str, key: int) -> None:
    """A map to numbers without a sign, as `protoc` describes one."""
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    has(entry, "key", key)
    has(entry, "value", U64)
    has(message, name, Kind.TYPE_MESSAGE, f".{message.name}.{entry.name}", many=True)


def described(*names: str, package: str = "") -> bytes:
    """What `protoc` writes of a file of such messages, behind another one that it imports."""
    lines = FileDescriptorProto(name="line.proto", package="parts", syntax="proto3")
    has(line := lines.message_type.add(name="Line"), "pieces", U32)
    has(line, "note", STRING)
    file = FileDescriptorProto(name="order.proto", syntax="proto3", dependency=["line.proto"])
    file.package = package
    for name in names:
        order = file.message_type.add(name=name)
        has(order, "id", U64)
        has(order, "counts", U32, many=True)
        has(order, "line", Kind.TYPE_MESSAGE, ".parts.Line")
        has(order, "lines", Kind.TYPE_MESSAGE, ".parts.Line", many=True)
        if not package:
            has_map(order, "stock", U32)
            has_map(order, "named", STRING)
    return b"".join(text(1, each.SerializeToString()) for each in (lines, file))


def decoded(values: Sequence[bytes | None], *, behind_header: bool = False) -> list[Any]:
    message = protobuf_message(described("Order"), None)
    found = decoder(message, framed=behind_header)(pa.array(values, pa.binary()))
    assert found.type == message.arrow_type
    return list(found.to_pylist())


BARE = {"id": Decimal(0), "counts": [], "line": None, "lines": [], "stock": [], "named": []}


def test_numbers_without_a_sign_become_wider_wherever_they_stand() -> None:
    line = pa.struct([pa.field("pieces", pa.int64(), False), pa.field("note", pa.string(), False)])
    kind = protobuf_message(described("Order"), None).arrow_type
    found = {field.name: field.type for field in kind}

    assert (found["id"], found["line"]) == (pa.decimal128(20, 0), line)
    assert (found["counts"].value_type, found["lines"].value_type) == (pa.int64(), line)
    maps = [(found[name].key_type, found[name].item_type) for name in ("stock", "named")]
    assert maps == [(pa.int64(), pa.decimal128(20, 0)), (pa.string(), pa.decimal128(20, 0))]


def test_the_largest_numbers_are_whole_wherever_they_stand() -> None:
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

    assert decoded([value]) == [
        {
            "id": Decimal(top64),
            "counts": [7, top32],
            "line": {"pieces": top32, "note": "x"},
            "lines": [{"pieces": top32, "note": "x"}, {"pieces": 0, "note": ""}],
            "stock": [(top32, Decimal(top64))],
            "named": [("k", Decimal(top64))],
        }
    ]


def test_what_is_no_message_and_what_is_not_there_are_null_in_their_places() -> None:
    values = [integer(1, 3), None, b"\xff" * 11, b"", integer(1, 4)]

    assert decoded([]) == []
    assert decoded(values) == [{**BARE, "id": 3}, None, None, BARE, {**BARE, "id": 4}]


@pytest.mark.parametrize(
    ("value", "wording"),
    [
        (framed(integer(1, 3)), 3),
        (framed(b""), 0),  # an empty message behind its header is one
        (framed(integer(1, 3), steps=b"\4\0\2"), 3),  # two steps lead to it
        (framed(integer(1, 3), steps=b"\2\xac\2"), 3),  # one step, and its number has two bytes
        (framed(integer(1, 3), steps=b"\x82\1" + b"\0" * 65), 3),  # as many as two bytes say
        (b"\1" + framed(integer(1, 3))[1:], None),  # not the zero that a header begins with
        (framed(integer(1, 3), steps=b"\1"), None),  # fewer than no step
        (b"\0\0\0\0\7", None),
        (b"\0\0", None),
        (b"", None),
        (None, None),
        (framed(b"", steps=b"\4\0"), None),  # the second step is not there
        (framed(b"", steps=b"\4\0\x80"), None),  # it does not end
        (framed(b"", steps=b"\x80"), None),
    ],
)
def test_the_header_of_a_value_is_read_to_where_the_message_begins(
    value: bytes | None, wording: int | None
) -> None:
    (found,) = decoded([value], behind_header=True)

    assert found == (None if wording is None else {**BARE, "id": wording})


def test_a_message_is_called_with_its_package_where_there_is_one() -> None:
    assert protobuf_message(described("Order"), None).name == "Order"
    assert protobuf_message(described("Order", package="shop"), None).name == "shop.Order"
    message = (
        "it does not describe exactly one message; name one, such as `message: NAME`; "
        "known: shop.Item, shop.Order"
    )
    with pytest.raises(ValueError) as rejected:
        protobuf_message(described("Order", "Item", package="shop"), None)
    assert str(rejected.value) == message


def test_an_unknown_message_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ValueError) as rejected:
        protobuf_message(described("Order", "Item"), "")
    assert str(rejected.value) == 'no message is called ""; known: Item, Order'
