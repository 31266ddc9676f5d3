"""How records of a data set are sent as Protobuf: exactly, or not at all."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.json_format import MessageToDict

from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.reconcile.reading.protobuf_message import protobuf_message
from streamquake.harness.workloads.data_sets.encodings.protobuf import protobuf_encoding
from streamquake.harness.workloads.data_sets.workload import DataSetWorkload
from streamquake.topologies.problems import BadInput

Kind = FieldDescriptorProto
PLAIN = {
    "id": Kind.TYPE_UINT64,
    "small": Kind.TYPE_SINT32,
    "share": Kind.TYPE_DOUBLE,
    "paid": Kind.TYPE_BOOL,
    "name": Kind.TYPE_STRING,
    "raw": Kind.TYPE_BYTES,
}


def add(message: DescriptorProto, name: str, kind: Any, **more: Any) -> FieldDescriptorProto:
    return message.field.add(
        name=name,
        number=len(message.field) + 1,
        type=kind,
        **{"label": Kind.LABEL_OPTIONAL, **more},
    )


def optional(message: DescriptorProto, name: str, kind: Any) -> None:
    """A field with presence, as `optional` of proto3 makes one."""
    add(message, name, kind, proto3_optional=True, oneof_index=len(message.oneof_decl))
    message.oneof_decl.add(name=f"_{name}")


def descriptors() -> str:
    """`shop.Order`, as `protoc` describes it, in the form of a recorded plan."""
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    item = order.nested_type.add(name="Item")
    add(item, "price", Kind.TYPE_FLOAT)
    entry = order.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    add(entry, "key", Kind.TYPE_STRING)
    add(entry, "value", Kind.TYPE_INT32)
    kinds = order.enum_type.add(name="Kind")
    kinds.value.add(name="NEW", number=0)
    kinds.value.add(name="PAID", number=3)
    order.oneof_decl.add(name="by")
    add(order, "card", Kind.TYPE_STRING, oneof_index=0)
    add(order, "cash", Kind.TYPE_INT64, oneof_index=0)
    for name, kind in PLAIN.items():
        optional(order, name, kind)
    add(order, "count", Kind.TYPE_INT32)
    add(order, "kind", Kind.TYPE_ENUM, type_name=".shop.Order.Kind")
    add(order, "item", Kind.TYPE_MESSAGE, type_name=".shop.Order.Item")
    many = {"label": Kind.LABEL_REPEATED}
    add(order, "items", Kind.TYPE_MESSAGE, type_name=".shop.Order.Item", **many)
    add(order, "tags", Kind.TYPE_STRING, **many)
    add(order, "counts", Kind.TYPE_MESSAGE, type_name=".shop.Order.CountsEntry", **many)
    return base64.encodebytes(FileDescriptorSet(file=[file]).SerializeToString()).decode()


RECORD: Mapping[str, Any] = {
    "id": (1 << 64) - 1,
    "small": -5,
    "share": Decimal("0.1"),
    "paid": False,
    "name": "é\0",
    "cash": 7,
    "count": 0,
    "kind": "PAID",
    "item": {"price": Decimal("0.5")},
    "items": [{"price": 1}, {"price": 0}],
    "tags": ["a", ""],
    "counts": {"x": 1, "": 0},
}


def decoded(**changed: Any) -> Any:
    value = protobuf_encoding(descriptors(), "shop.Order")({**RECORD, **changed})
    kind = protobuf_message(base64.b64decode(descriptors()), "shop.Order").kind
    return MessageToDict(
        kind.FromString(value),
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )


def test_a_message_has_the_values_of_the_record() -> None:
    assert decoded() == {
        **RECORD,
        "id": "18446744073709551615",
        "cash": "7",
        "share": 0.1,
        "item": {"price": 0.5},
    }


def test_an_optional_field_without_a_value_is_not_there() -> None:
    found = decoded(paid=None, cash=None, item=None)
    assert found.keys() == RECORD.keys() - {"paid", "cash", "item"}
    assert decoded(kind=0)["kind"] == "NEW"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": 1 << 64}, "id is 18446744073709551616, which is not exactly representable as uint"),
        ({"id": -1}, "id is -1"),
        ({"small": 1 << 31}, "small is 2147483648, which is not exactly representable as int32"),
        ({"small": True}, "small is true"),
        ({"small": Decimal("1.0")}, "small is 1.0"),
        ({"share": (1 << 53) + 1}, "share is 9007199254740993"),
        ({"share": "1"}, 'share is "1"'),
        ({"paid": 0}, "paid is 0, which is not exactly representable as bool"),
        ({"name": 1}, "name is 1, which is not exactly representable as string"),
        ({"raw": "x"}, 'raw is "x", which is not exactly representable as bytes'),
        ({"count": None}, "count has no value, which would be read as the default"),
        ({"tags": None}, "tags has no value"),
        ({"tags": "a"}, 'tags is "a", which is not exactly representable as list of string'),
        ({"tags": [1]}, "tags[0] is 1"),
        ({"kind": "OLD"}, 'kind is "OLD", which is not exactly representable as enum'),
        ({"kind": 7}, "kind is 7"),
        ({"item": 7}, "item is 7, which is not exactly representable as message"),
        ({"item": {}}, "item.price has no value"),
        ({"items": [{"price": Decimal("0.123456789")}]}, "items[0].price is 0.123456789"),
        ({"items": [7]}, "items[0] is 7, which is not exactly representable as message"),
        ({"items": [{"price": 1, "x": 1}]}, "the schema has no field items[0].x"),
        ({"counts": []}, "counts is [], which is not exactly representable as map"),
        ({"counts": {"a": "1"}}, 'counts.a is "1"'),
        ({"card": "c"}, "the record has card and cash, which exclude each other"),
        ({"other": None}, "the schema has no field other"),
    ],
)
def test_what_protobuf_would_change_or_drop_is_rejected(changed: Any, message: str) -> None:
    with pytest.raises(ValueError) as rejected:
        decoded(**changed)
    assert message in str(rejected.value)


def experiment(folder: Path, more: str) -> DataSetWorkload:
    (folder / "shop.desc").write_bytes(base64.b64decode(descriptors()))
    fields = (
        "count: {sequence: {}}, kind: {choice: {of: [NEW, PAID]}}, tags: {list: {of: {text: {}}}}"
    )
    (folder / "x.yaml").write_text(
        "name: x\ntopology: flink-kafka-hdfs\njob: {sql: copy.sql}\nworkload:\n  template:\n"
        f"    {{records: 9, rate_per_s: 9, fields: {{{fields}}}, format: protobuf{more}}}\n"
    )
    load = load_experiment(str(folder / "x.yaml"), seed=1).workload
    assert isinstance(load, DataSetWorkload)
    return load


def test_a_load_is_sent_as_messages(tmp_path: Path) -> None:
    lacking = ", schema: shop.desc"
    with pytest.raises(BadInput, match="items has no value"):
        experiment(tmp_path, lacking)
    (tmp_path / "row.jsonl").write_text(json.dumps({**RECORD, "share": 0.5, "item": None}))
    (tmp_path / "x.yaml").write_text(
        "{name: x, topology: flink-kafka-hdfs, job: {sql: copy.sql}, workload: {recorded: "
        "{file: row.jsonl, format: protobuf, schema: shop.desc, message: shop.Order}}}"
    )
    load = load_experiment(str(tmp_path / "x.yaml"), seed=1).workload
    assert isinstance(load, DataSetWorkload)
    (sent,) = load.outgoing(load.data_set(1))
    kind = protobuf_message(base64.b64decode(descriptors()), "shop.Order").kind
    assert kind.FromString(sent.value()).name == "é\0"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("", "records are sent as protobuf by descriptors; give them: `schema: FILE`"),
        (", schema: shop.desc, header: confluent", "sent as protobuf without a header"),
        (", schema: shop.desc, message: Other", 'no message is called "Other"'),
        (", schema: x.yaml", "expected what `protoc"),
    ],
)
def test_wrong_schemas_are_rejected(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        experiment(tmp_path, more)
