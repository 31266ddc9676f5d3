"""Protobuf as a side: values of a topic, by the descriptors of their message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.comparison import DataComparison
from streamquake.harness.reconcile.mapping import read_mapping
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import comparison_of, nonzero_counts, write_rows
from tests.harness.reconcile.protobuf_bytes import integer, text, with_header, write_descriptors
from tests.harness.reconcile.stub_topic import stub_topic

ROWS: tuple[dict[str, Any], ...] = (
    {"id": 1, "text": "a", "u": 2**64 - 1, "order": 2**32 - 1},
    {"id": 2**63 - 1, "text": "é", "u": 0, "order": 1},
    {"id": -(2**63), "text": "", "u": 5, "order": 2},
    {"id": 4, "text": None, "u": None, "order": None},
)


def order(row: dict[str, Any]) -> bytes:
    message = b"" if row["text"] is None else text(2, row["text"].encode())
    numbers = ((3, row["u"]), (4, row["order"]))
    rest = b"".join(integer(field, value) for field, value in numbers if value is not None)
    return integer(1, row["id"]) + message + rest


@pytest.fixture
def topic(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Topic:
    return Topic(spark, monkeypatch, tmp_path)


class Topic:
    """A topic of one partition, whose values are compared with `ROWS`."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.spark, self.patch, self.folder = spark, monkeypatch, folder

    def comparison_of(
        self, values: Sequence[bytes | None], mapping_lines: str = ""
    ) -> DataComparison:
        topic = stub_topic(self.patch, values)
        write_descriptors(self.folder / "shop.desc", "Order")
        mapping = self.folder / "m.yaml"
        mapping.write_text(f"format: protobuf\nschema: shop.desc\n{mapping_lines}")
        return comparison_of(
            self.spark,
            write_rows(self.folder / "e.json", list(ROWS)),
            topic,
            "id",
            compare="text, u, `order`",
            actual_format="protobuf",
            actual_schema=read_mapping(mapping, "actual").schema,
        )


def test_values_are_decoded_by_the_given_message(topic: Topic) -> None:
    assert nonzero_counts(topic.comparison_of([order(row) for row in ROWS])) == {"reordered": None}


@pytest.mark.nightly
def test_a_value_that_is_no_message_is_malformed_and_a_tombstone_has_no_fields(
    topic: Topic,
) -> None:
    broken = (b"\xff" * 11, text(2, b"\xff\xfe"))
    result = topic.comparison_of([*map(order, ROWS), *broken, None])

    assert nonzero_counts(result) == {"phantom": 3, "malformed": 2, "reordered": None}
    records = {f.detail["record"] for f in result.findings if f.what == "malformed"}
    assert records == {value.hex().upper() for value in broken}


@pytest.mark.nightly
def test_a_value_that_differs_is_changed(topic: Topic) -> None:
    """Numbers of 64 bits are not rounded; a missing text is not an empty text."""
    close, empty = {**ROWS[0], "u": 2**64 - 2}, {**ROWS[3], "text": ""}

    result = topic.comparison_of([order(row) for row in (close, *ROWS[1:3], empty)])

    assert nonzero_counts(result) == {"changed": 2, "reordered": None}
    received = {f.detail["id"]: f.detail["seen"] for f in result.findings}
    assert received == {
        1: [{"text": "a", "u": 2**64 - 2, "`order`": 2**32 - 1}],
        4: [{"text": "", "u": None, "`order`": None}],
    }


def test_the_header_before_each_value_is_removed(topic: Topic) -> None:
    """The header has the path of the message in its file: the first message, or several steps."""
    values = [with_header(order(row)) for row in ROWS[:3]]
    values.append(with_header(order(ROWS[3]), steps=b"\4\0\2"))
    without = order(ROWS[0])
    cut = (
        with_header(b"", steps=b""),
        with_header(b"", steps=b"\4\0"),
        with_header(b"", steps=b"\xff"),
    )

    result = topic.comparison_of([*values, without, *cut], "header: confluent\n")

    assert nonzero_counts(result) == {"phantom": 4, "malformed": 4, "reordered": None}


def test_the_message_is_named_where_there_are_several(tmp_path: Path) -> None:
    write_descriptors(tmp_path / "shop.desc", "Item", "Order")

    def schema(mapping_lines: str) -> object:
        (tmp_path / "m.yaml").write_text(f"format: protobuf\nschema: shop.desc\n{mapping_lines}")
        return read_mapping(tmp_path / "m.yaml", "actual").schema

    assert schema("message: shop.Order") is not None
    with pytest.raises(
        BadInput, match=r":2: schema: it does not describe exactly one message; name"
    ):
        schema("")
    message = r':2: schema: no message is called "shop\.Oder"; did you mean "shop\.Order"\?'
    with pytest.raises(BadInput, match=message):
        schema("message: shop.Oder")


@pytest.mark.parametrize(
    ("mapping_lines", "message"),
    [
        ("schema: text.desc", r":2: schema: expected what `protoc --include_imports"),
        ("schema: empty.desc", r":2: schema: it does not describe exactly one message"),
        ("schema: bare.desc", r":2: schema: shop\.Bare has no fields"),
        ("schema: self.desc", r":2: schema: its descriptors cannot be used: Recursive structure"),
        ("schema: lacking.desc", r":2: schema: its descriptors cannot be used: .*other\.proto"),
        ("schema: {3: bare.desc}\nheader: confluent", ":2: schema: one schema of format protobuf"),
        ("schema: none.desc", r":2: schema: .*none\.desc cannot be read: No such file"),
    ],
)
def test_unusable_descriptors_are_rejected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mapping_lines: str, message: str
) -> None:
    # A relative path stays short: a message with a long one is cut.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.desc").write_text('syntax = "proto3";')
    (tmp_path / "empty.desc").write_bytes(b"")
    write_descriptors(tmp_path / "bare.desc", "Bare", fields={})
    write_descriptors(
        tmp_path / "self.desc", "Own", fields={"it": FieldDescriptorProto.TYPE_MESSAGE}
    )
    (tmp_path / "lacking.desc").write_bytes(
        text(1, text(1, b"a.proto") + text(3, b"other.proto") + text(4, text(1, b"A")))
    )
    (tmp_path / "m.yaml").write_text(f"format: protobuf\n{mapping_lines}")

    with pytest.raises(BadInput, match=message):
        read_mapping(Path("m.yaml"), "actual")


def test_a_side_of_files_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    side = write_rows(tmp_path / "e.json", [{"id": 1}])
    with pytest.raises(BadInput, match="Protobuf has no files of many records"):
        comparison_of(spark, side, side, "id", actual_format="protobuf")


def test_a_topic_needs_a_schema(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    uri, sent = (
        stub_topic(monkeypatch, [order(ROWS[0])]),
        write_rows(tmp_path / "e.json", [ROWS[0]]),
    )
    with pytest.raises(BadInput, match="values in protobuf do not contain their schema"):
        comparison_of(spark, sent, uri, "id", actual_format="protobuf")
