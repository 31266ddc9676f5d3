"""Values that are sent in a format with a schema, read by Spark as the values of a topic are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from pyspark.sql import SparkSession

from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.workloads.data_sets.data_set import RECORDS
from streamquake.harness.workloads.data_sets.workload import STORED, DataSetWorkload
from tests.harness.reconcile.protobuf_bytes import write_descriptors

FIELDS = """
id: {sequence: {start: -5}}, paid: {choice: {of: [true, false]}},
who: {choice: {of: [ann, "b,b", ""]}, null_share: 0.3}, note: {text: {}, missing_share: 0.3},
price: {fraction: {least: -9, most: 99}, null_share: 0.2}
"""
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "id", "type": "long"},
        {"name": "price", "type": ["double", "null"], "default": 7.5},
        {"name": "who", "type": ["null", "string"]},
        {"name": "paid", "type": "boolean"},
    ],
}
PROTOBUF = {
    "id": FieldDescriptorProto.TYPE_SINT64,
    "who": FieldDescriptorProto.TYPE_STRING,
    "price": FieldDescriptorProto.TYPE_DOUBLE,
    "paid": FieldDescriptorProto.TYPE_BOOL,
    "note": FieldDescriptorProto.TYPE_STRING,
}


def load_in(folder: Path, schema: str) -> DataSetWorkload:
    (folder / "row.avsc").write_text(json.dumps(AVRO))
    write_descriptors(folder / "row.desc", "Row", fields=PROTOBUF)
    (folder / "x.yaml").write_text(
        f"name: x\ntopology: kafka-only\nworkload: {{template: {{{schema}, records: 400, "
        f"rate_per_s: 100, fields: {{{FIELDS}}}}}}}\n"
    )
    load = load_experiment(str(folder / "x.yaml"), seed=3).workload
    assert isinstance(load, DataSetWorkload)
    return load


@pytest.mark.parametrize(
    "schema",
    [
        "format: avro, schema: row.avsc",
        "format: avro, schema: {7: row.avsc}, header: confluent",
        "format: protobuf, schema: row.desc",
    ],
)
def test_a_topic_has_what_was_sent(spark: SparkSession, tmp_path: Path, schema: str) -> None:
    load = load_in(tmp_path, schema)
    load.store(tmp_path, 3)
    sent = spark.read.parquet(str(tmp_path / STORED / RECORDS)).drop("index")
    values = [(bytearray(each.value() or b""),) for each in load.outgoing(load.data_set(3))]
    raw = spark.createDataFrame(values, "value binary")
    output = load.input_promise().outputs["input"]
    format_ = output.to_format("x.yaml")
    assert format_ is not None
    table = format_.values(raw, (), frozenset(), lane=(), position="")
    read: Any = table.frame.select(sent.columns)
    assert sent.count() == 400
    assert read.exceptAll(sent).collect() == []
    assert sent.exceptAll(read).collect() == []
