"""How records of a data set are sent: as CSV and Avro, exactly or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of_plan,
    load_experiment,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.workloads.data_sets.encodings.avro import avro_encoding
from streamquake.harness.workloads.data_sets.encodings.csv import csv_encoding
from streamquake.harness.workloads.data_sets.workload import DataSetWorkload
from streamquake.topologies.problems import BadInput

INNER = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "float"}]}
SCHEMA = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": ["int", "null"]},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "share", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "of", "type": ["null", INNER], "default": None},
        {"name": "again", "type": ["null", "inner"]},
        {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["A", "B"]}},
        {"name": "any", "type": ["null", "long", "double", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
    ],
}
RECORD: Mapping[str, Any] = {
    "id": 1 << 62,
    "small": None,
    "price": Decimal("1.5"),
    "at": 1_700_000_000_000,
    "share": Decimal("0.1"),
    "paid": True,
    "of": {"x": Decimal("0.10000000149011612")},
    "again": None,
    "kind": "B",
    "any": Decimal("2.5"),
    "tags": ["é"],
    "counts": {"a": 1},
}


def encoded(**changed: Any) -> bytes:
    return avro_encoding(json.dumps(SCHEMA), None)({**RECORD, **changed})


def decoded(value: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(value), fastavro.parse_schema(SCHEMA), None)


def test_avro_has_the_values_of_the_record() -> None:
    found = decoded(encoded())
    assert found.pop("at").timestamp() == 1_700_000_000
    expected = {k: v for k, v in RECORD.items() if k != "at"}
    assert found == {**expected, "share": 0.1, "of": {"x": 0.10000000149011612}}


def test_a_field_that_is_left_out_is_null_and_not_the_default() -> None:
    schema = {**SCHEMA, "fields": [{"name": "n", "type": ["int", "null"], "default": 7}]}
    value = avro_encoding(json.dumps(schema), None)({})
    assert fastavro.schemaless_reader(io.BytesIO(value), schema, None) == {"n": None}


def test_the_header_has_the_schema_id() -> None:
    value = avro_encoding(json.dumps(SCHEMA), 258)(RECORD)
    assert value == b"\0\0\0\x01\x02" + encoded()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": 1 << 63}, "id is 9223372036854775808, which is not exactly representable as long"),
        ({"id": True}, "id is true, which is not exactly representable as long"),
        ({"id": Decimal("1.0")}, "id is 1.0"),
        ({"id": None}, "id is null"),
        ({"small": "1"}, 'small is "1", which is not exactly representable as int'),
        ({"price": Decimal("1.555")}, "price is 1.555, which is not exactly representable as DECI"),
        ({"price": Decimal(10**7)}, "price is 10000000"),
        ({"at": "2026-01-01 00:00:00"}, 'at is "2026-01-01 00:00:00"'),
        ({"share": Decimal("0.12345678901234567890")}, "share is 0.12345678901234567890"),
        ({"share": (1 << 53) + 1}, "share is 9007199254740993"),
        ({"paid": 1}, "paid is 1"),
        ({"of": {"x": Decimal("0.1")}}, "of.x is 0.1, which is not exactly representable as float"),
        ({"of": {"x": Decimal("0.123456789")}}, "of.x is 0.123456789"),
        ({"of": {"x": Decimal("1e300")}}, "of.x is 1E+300"),
        ({"of": {"y": 1}}, "the schema has no field of.y"),
        ({"of": []}, "of is [], which is not exactly representable as record"),
        ({"kind": "C"}, 'kind is "C", which is not exactly representable as enum'),
        ({"any": []}, "any is [], which is not exactly representable as ["),
        ({"tags": ["a", 1]}, "tags[1] is 1"),
        ({"tags": {}}, "tags is {}"),
        ({"counts": {"a": 1 << 31}}, "counts.a is 2147483648"),
        ({"other": 1}, "the schema has no field other"),
    ],
)
def test_what_avro_would_change_or_drop_is_rejected(changed: Any, message: str) -> None:
    with pytest.raises(ValueError) as rejected:
        encoded(**changed)
    assert message in str(rejected.value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_numeral_of_a_double_is_that_double(value: float) -> None:
    assert decoded(encoded(share=Decimal(repr(value))))["share"] == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_float_is_sent_where_it_is_the_double_of_the_record(value: float) -> None:
    for numeral in (Decimal(value), Decimal(repr(value))):
        assert decoded(encoded(of={"x": numeral}))["of"] == {"x": value}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "expected an Avro schema"),
        ('"long"', "expected the Avro schema of a record"),
        ('{"type": "record", "fields": []}', "expected an Avro schema"),
        ('{"type": "record", "name": "a", "fields": [{"name": "b", "type": "c"}]}', "expected an"),
        ("[]", "expected the Avro schema of a record"),
        ("null", "expected"),
    ],
)
def test_a_wrong_schema_is_rejected(schema: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        avro_encoding(schema, None)


def sent_by(kind: Any, value: Any) -> Any:
    """The value of a field of this type, as its consumers read it."""
    schema = of_fields(x=kind)
    encode = avro_encoding(json.dumps(schema), None)
    record: Any = fastavro.schemaless_reader(io.BytesIO(encode({"x": value})), schema, None)
    return record["x"]


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (["float", "double"], Decimal("0.1"), 0.1),
        (["null", "float", "double"], Decimal("0.5"), 0.5),
        (["float", DECIMAL], Decimal("34.86"), Decimal("34.86")),
        (["float", "long"], 16_777_217, 16_777_217),
        (["double", "long"], (1 << 53) + 1, (1 << 53) + 1),
        (["int", "long", "string"], 1 << 40, 1 << 40),
        ({"type": "array", "items": ["float", "double"]}, [Decimal("0.1")], [0.1]),
        (DECIMAL, Decimal("1.500"), Decimal("1.50")),
        (DECIMAL, Decimal("3"), Decimal("3.00")),
        (DECIMAL, Decimal("-0.0"), Decimal("0.00")),
        ({**DECIMAL, "type": "fixed", "size": 4, "name": "f"}, Decimal("-0.0"), Decimal("0.00")),
        ("double", Decimal("-0.0"), -0.0),
    ],
)
def test_the_branch_that_holds_the_value_exactly_is_taken(kind: Any, value: Any, read: Any) -> None:
    assert sent_by(kind, value) == read


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"my-field": "int"}, '"my-field" is no name'),
        ({"a.b": "int"}, "is no name"),
        ({"x": ["int", "int"]}, "a union has int twice"),
        ({"x": ["null", ["int", "long"]]}, "a union within a union"),
        ({"x": [{"type": "map", "values": "int"}, INNER]}, "a union of map and inner"),
        ({"x": {**DECIMAL, "precision": 39}}, "decimals have up to 38 digits, got 39"),
    ],
)
def test_a_schema_that_consumers_do_not_accept_is_rejected(fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        avro_encoding(json.dumps(of_fields(**fields)), None)


def test_a_field_or_an_alias_that_is_there_twice_is_rejected() -> None:
    schema = of_fields(x="int")
    twice = {**schema, "fields": schema["fields"] * 2}
    with pytest.raises(ValueError, match='the field "x" is there twice'):
        avro_encoding(json.dumps(twice), None)
    other = {"name": "y", "type": "int", "aliases": ["x"]}
    with pytest.raises(ValueError, match='the alias "x" is the name of another field'):
        avro_encoding(json.dumps({**schema, "fields": [*schema["fields"], other]}), None)


def test_what_is_nested_too_deeply_is_rejected() -> None:
    with pytest.raises(ValueError, match="expected an Avro schema: it is nested too deeply"):
        avro_encoding("[" * 100_000, None)
    schema = of_fields(next=["null", "row"])
    record: dict[str, Any] = {"next": None}
    for _ in range(2000):
        record = {"next": record}
    with pytest.raises(ValueError, match="the record is nested too deeply for Avro"):
        avro_encoding(json.dumps(schema), None)(record)


def test_bytes_without_a_precision_are_no_decimal() -> None:
    schema = of_fields(d={"type": "bytes", "logicalType": "decimal"})
    with pytest.raises(ValueError, match="d is 1, which is not exactly representable as bytes"):
        avro_encoding(json.dumps(schema), None)({"d": 1})


def test_csv_has_the_fields_in_their_order_with_text_in_quotes() -> None:
    columns = {"a": "STRING", "n": "BIGINT", "d": "DOUBLE", "b": "BOOLEAN", "o": "JSON"}
    record = {"n": 7, "a": 'x, "y"\n', "d": Decimal("1.10"), "b": False, "o": {"k": ["v"]}}
    value = csv_encoding(columns)(record)
    assert value == b'"x, ""y""\n",7,1.10,"false","{""k"":[""v""]}"'


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_csv_is_read_as_it_was(fields: list[str]) -> None:
    columns = {f"f{n}": "STRING" for n in range(len(fields))}
    value = csv_encoding(columns)(dict(zip(columns, fields, strict=True)))
    assert list(csv.reader(io.StringIO(value.decode(), newline=""))) == [fields]


def test_csv_has_no_null() -> None:
    with pytest.raises(ValueError, match="b has no value, and CSV cannot tell none from empty"):
        csv_encoding({"a": "BIGINT", "b": "STRING"})({"a": 0, "b": None})


def document(topology: str = "kafka-only", **load: Any) -> str:
    fields = {"id": {"sequence": {}}, "who": {"choice": {"of": ["a", "b"]}}}
    template = {"records": 1000, "rate_per_s": 100, "fields": fields, **load}
    whole = {"name": "x", "topology": topology, "workload": {"template": template}}
    if topology != "kafka-only":
        whole["job"] = {"sql": "copy.sql"}
    return yaml.safe_dump(whole)


def experiment_in(folder: Path, text: str) -> Experiment:
    (folder / "x.yaml").write_text(text)
    (folder / "x.avsc").write_text(json.dumps(of_fields(id="long", who="string")))
    return load_experiment(str(folder / "x.yaml"), seed=1)


def of_fields(**types: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return {"type": "record", "name": "row", "fields": fields}


def load_of(experiment: Experiment) -> DataSetWorkload:
    assert isinstance(experiment.workload, DataSetWorkload)
    return experiment.workload


def test_a_load_is_sent_in_its_format(tmp_path: Path) -> None:
    load = load_of(experiment_in(tmp_path, document(format="avro", schema="x.avsc")))
    first = next(load.outgoing(load.data_set(1)))
    schema = of_fields(id="long", who="string")
    read = fastavro.schemaless_reader(io.BytesIO(first.value() or b""), schema, None)
    assert read == json.loads(load.data_set(1).lines[0])


def test_the_example_can_be_run() -> None:
    example = Path(__file__).parents[3] / "examples" / "avro" / "orders.yaml"
    load = load_of(load_experiment(str(example), seed=1))
    value = next(load.outgoing(load.data_set(1))).value()
    assert value is not None
    assert value.startswith(b"\0\0\0\0\7")


def test_a_record_whose_tombstone_is_true_is_sent_as_its_key_alone(tmp_path: Path) -> None:
    fields = {
        "who": {"choice": {"of": ["a", "b"]}},
        "gone": {"choice": {"of": [True, False], "weights": [1, 3]}, "null_share": 0.2},
    }
    text = document("flink-kafka-hdfs", fields=fields, key="who", tombstone="gone")
    load = load_of(experiment_in(tmp_path, text))
    for record, line in zip(load.outgoing(found := load.data_set(1)), found.lines, strict=True):
        of = json.loads(line)
        assert record.key == of["who"]
        assert record.value() == (None if of["gone"] is True else line)
    assert len({record.value() is None for record in load.outgoing(found)}) == 2


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"tombstone": "gone"}, "`tombstone` needs a `key`"),
        ({"tombstone": "id", "key": "who"}, "tombstone: expected a field of true or false: id"),
        ({"tombstone": "none", "key": "who"}, "tombstone: expected a field of true or false: none"),
        ({"tombstone": "gone", "key": "nullable"}, "a record without a value needs a key"),
    ],
)
def test_a_tombstone_that_deletes_nothing_is_rejected(
    tmp_path: Path, load: Any, message: str
) -> None:
    fields = {
        "id": {"sequence": {}},
        "who": {"choice": {"of": ["a"]}},
        "nullable": {"choice": {"of": ["a"]}, "null_share": 0.9},
        "gone": {"choice": {"of": [True]}},
    }
    with pytest.raises(BadInput, match=message):
        experiment_in(tmp_path, document("flink-kafka-hdfs", fields=fields, **load))


def test_without_a_job_a_tombstone_cannot_be_compared(tmp_path: Path) -> None:
    fields = {"who": {"choice": {"of": ["a"]}}, "gone": {"choice": {"of": [True, False]}}}
    with pytest.raises(BadInput, match="a tombstone has no fields; give the experiment a job"):
        experiment_in(tmp_path, document(fields=fields, key="who", tombstone="gone"))


def test_a_plan_holds_the_schema(tmp_path: Path) -> None:
    experiment = experiment_in(
        tmp_path, document(format="avro", schema={"7": "x.avsc"}, header="confluent")
    )
    plan = experiment_document(experiment)
    again = experiment_of_plan(plan, str(tmp_path / "run.json"), seed=1)
    assert load_of(again) == load_of(experiment)
    plan["workload"]["template"]["schema"] = {"7": "x.avsc"}
    with pytest.raises(BadInput, match="a record must hold the schema itself"):
        experiment_of_plan(plan, str(tmp_path / "run.json"), seed=1)


def test_without_a_job_the_topic_is_read_in_the_format_of_the_load(tmp_path: Path) -> None:
    experiment = experiment_in(
        tmp_path, document(format="avro", schema={"7": "x.avsc"}, header="confluent")
    )
    output = experiment.promise.outputs["input"]
    assert (output.format, output.header) == ("avro", "confluent")
    assert output.schema_ == load_of(experiment).schema_


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "long", "logicalType": "timestamp-millis"},
        ["null", {"type": "int", "logicalType": "date"}],
        ["long", "string"],
        ["long", "double"],
    ],
)
def test_without_a_job_a_field_that_is_read_in_another_type_is_rejected(
    tmp_path: Path, kind: Any
) -> None:
    (tmp_path / "y.avsc").write_text(json.dumps(of_fields(id=kind, who=["null", "string"])))
    with pytest.raises(BadInput, match="a topic in avro has id in another type than the records"):
        experiment_in(tmp_path, document(format="avro", schema="y.avsc"))
    with_job = document("flink-kafka-hdfs", format="avro", schema="y.avsc")
    assert load_of(experiment_in(tmp_path, with_job)).format == "avro"


@pytest.mark.parametrize("schema_id", ["007", "٧", "-1", "1.0", ""])
def test_a_schema_id_is_written_as_its_readers_count_it(tmp_path: Path, schema_id: str) -> None:
    load: dict[str, Any] = {"format": "avro", "header": "confluent"}
    load["schema"] = {schema_id: "x.avsc"}
    with pytest.raises(BadInput, match="expected a schema ID, got"):
        experiment_in(tmp_path, document(**load))


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"format": "parquet"}, "records are sent as json, csv, avro, protobuf, not as parquet"),
        ({"format": "avor"}, 'no format is called "avor"; did you mean "avro"?'),
        ({"format": "avro"}, "records are sent as avro by a schema; give it as `schema: FILE`"),
        ({"format": "csv", "schema": "x.avsc"}, "only records of format avro"),
        ({"schema": "x.avsc"}, "only records of format avro"),
        ({"format": "avro", "schema": "none.avsc"}, "none.avsc cannot be read"),
        ({"format": "avro", "schema": "x.yaml"}, "expected an Avro schema"),
        (
            {"format": "avro", "schema": "x.avsc", "header": "confluent"},
            "the header has the ID of the schema; give it: `schema: {ID: FILE}`",
        ),
        (
            {"format": "avro", "schema": {"1": "x.avsc", "2": "x.avsc"}, "header": "confluent"},
            "all records are sent by one schema",
        ),
        (
            {"format": "avro", "schema": {str(1 << 31): "x.avsc"}, "header": "confluent"},
            "schema IDs end at 2147483647",
        ),
        (
            {"format": "avro", "schema": "x.avsc", "fields": {"id": {"sequence": {}}}},
            "record 1: who is null, which is not exactly representable as string",
        ),
        ({"format": "csv"}, "without a job the records are read again, and the values of a topic"),
    ],
)
def test_wrong_formats_are_rejected(tmp_path: Path, load: Any, message: str) -> None:
    with pytest.raises(BadInput) as rejected:
        experiment_in(tmp_path, document(**load))
    problem = rejected.value.problems[0]
    assert str(problem.path).startswith("workload.template")
    assert message in problem.message


def test_a_later_record_that_cannot_be_sent_is_known_before_the_run(tmp_path: Path) -> None:
    fields = {"id": {"sequence": {"start": 2_147_483_000}}, "who": {"choice": {"of": ["a"]}}}
    (tmp_path / "x.yaml").write_text(document(format="avro", schema="y.avsc", fields=fields))
    (tmp_path / "y.avsc").write_text(json.dumps(of_fields(id="int", who="string")))
    load = load_of(load_experiment(str(tmp_path / "x.yaml"), seed=1))
    with pytest.raises(BadInput, match=r"workload.template: record 649: id is 2147483648"):
        load.store(tmp_path, 1)
    assert list(tmp_path.glob("sent*")) == []
