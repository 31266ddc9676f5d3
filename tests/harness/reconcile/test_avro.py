"""Avro as a side: files by their own schema, values of a topic by a given schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.comparison import DataComparison
from streamquake.harness.reconcile.mapping import read_mapping
from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.format import Schema, formats
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.avro_bytes import ORDER, WIDER, order, with_header, write_avro_file
from tests.harness.reconcile.data_sets import comparison_of, nonzero_counts, write_rows
from tests.harness.reconcile.stub_topic import stub_topic

pytestmark = pytest.mark.container
"""These tests start no container, but download Spark's connector, which only container tests
may."""
ROWS = [(1, "a"), (2**63 - 1, "é"), (-(2**63), ""), (4, None)]
ONE = Schema(texts={"": json.dumps(ORDER)}, place="m.yaml:1: schema")


def expected(folder: Path, rows: Sequence[tuple[int, str | None]] = ROWS) -> Path:
    return write_rows(folder / "e.json", [{"id": id, "text": text} for id, text in rows])


def test_files_are_read_by_their_own_schema(spark: SparkSession, tmp_path: Path) -> None:
    files = tmp_path / "out"
    write_avro_file(files / "part-0", ORDER, [order(*row) for row in ROWS[:2]])
    write_avro_file(files / "part-1", ORDER, [order(-(2**63), "x"), order(4, None)])

    result = comparison_of(spark, expected(tmp_path), files, "id", compare="text")

    assert nonzero_counts(result) == {"changed": 1, "reordered": None}
    (finding,) = result.findings
    assert finding.detail == {"id": -(2**63), "sent": [{"text": ""}], "seen": [{"text": "x"}]}
    assert "part-1" in finding.where


def test_files_with_different_schemas_need_one_for_all(spark: SparkSession, tmp_path: Path) -> None:
    files = tmp_path / "out"
    write_avro_file(files / "part-0", ORDER, [order(1, "a")])
    write_avro_file(files / "part-1", WIDER, [order(2, "b", n=8)])
    sent = write_rows(tmp_path / "e.json", [{"id": 1, "n": 7}, {"id": 2, "n": 8}])

    with pytest.raises(
        BadInput, match=r"part-1: its schema differs from that of .*part-0; name the schema"
    ):
        comparison_of(spark, sent, files, "id", compare="n")

    wider = Schema(texts={"": json.dumps(WIDER)}, place="")
    result = comparison_of(spark, sent, files, "id", compare="n", actual_schema=wider)
    assert nonzero_counts(result) == {"reordered": None}


@pytest.fixture
def topic(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Topic:
    return Topic(spark, monkeypatch, tmp_path)


class Topic:
    """A topic of one partition, whose values are compared with `ROWS`."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.spark, self.patch, self.folder = spark, monkeypatch, folder

    def comparison_of(
        self, values: Sequence[bytes | None], schema: Schema | None
    ) -> DataComparison:
        topic = stub_topic(self.patch, values)
        return comparison_of(
            self.spark,
            expected(self.folder),
            topic,
            "id",
            compare="text",
            actual_format="avro",
            actual_schema=schema,
        )


def test_values_are_decoded_by_the_given_schema(topic: Topic) -> None:
    """A value that the schema does not decode is malformed; a tombstone is a record of nulls."""
    result = topic.comparison_of(
        [*(order(*row) for row in ROWS), b"\x02\x04", b"\xff" * 11, None], ONE
    )

    assert nonzero_counts(result) == {"phantom": 3, "malformed": 2, "reordered": None}
    assert {f.detail["record"] for f in result.findings if f.what == "malformed"} == {
        "0204",
        "FF" * 11,
    }


def test_the_header_selects_the_schema_of_a_value(topic: Topic) -> None:
    two = Schema(texts={"3": json.dumps(ORDER), "258": json.dumps(WIDER)}, place="", header="c")
    values = [
        with_header(3, order(*ROWS[0])),
        *(with_header(258, order(*row, n=1)) for row in ROWS[1:]),
    ]

    result = topic.comparison_of([*values, order(1, "a"), b"\0\0"], two)

    assert nonzero_counts(result) == {"phantom": 2, "malformed": 2, "reordered": None}


def test_a_header_alone_is_a_record_whose_fields_take_no_bytes(topic: Topic) -> None:
    fields = [{"name": name, "type": "null"} for name in ("id", "text")]
    nulls = json.dumps({"type": "record", "name": "Nulls", "fields": fields})

    result = topic.comparison_of(
        [with_header(3, b"")], Schema(texts={"3": nulls}, place="", header="c")
    )

    assert (result.counts["phantom"], result.counts["malformed"]) == (1, 0)


def test_a_missing_schema_is_bad_input(topic: Topic) -> None:
    values = [
        with_header(3, order(*ROWS[0])),
        *(with_header(5, order(*row, n=1)) for row in ROWS[1:]),
    ]
    framing = Schema(texts=ONE.texts, place="m.yaml:2: schema", header="confluent")

    message = r"m\.yaml:2: schema: the headers have unknown schema IDs: 3 \(1 values\), 5 \(3 v"
    with pytest.raises(BadInput, match=message):
        topic.comparison_of(values, framing)
    with pytest.raises(BadInput, match="values in avro do not contain their schema"):
        topic.comparison_of(values, None)
    with pytest.raises(BadInput, match="expected the schema of a record"):
        topic.comparison_of(values, Schema(texts={"": '"string"'}, place=""))


def test_a_mapping_file_names_schemas_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(json.dumps(ORDER))
    lines = "key: id\nformat: avro\nschema: {3: a.avsc}\nheader: confluent\n"
    (tmp_path / "m.yaml").write_text(lines)

    schema = read_mapping(tmp_path / "m.yaml", "actual").schema

    place = f"{tmp_path / 'm.yaml'}:3: schema"
    assert schema == Schema(texts={"3": json.dumps(ORDER) + "\n"}, place=place, header="confluent")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format: avro\nschema: none.avsc", r":2: schema: .*none\.avsc cannot be read: No such"),
        ("format: avro\nschema: {x: a}\nheader: confluent", r":2: schema\.x: expected a schema ID"),
        ("format: avro\nschema: {3: a}", ":2: schema: schema IDs need a header; name"),
        ("format: avro\nheader: confluent", ":2: header: it needs a `schema`"),
        ("format: json\nschema: a", ":2: schema: only records of format avro or protobuf have"),
        ("format: avro\nschema: a", ":2: schema: expected the schema of a record, got something"),
        ("format: avro\nschema: a\nmessage: b", ":3: message: only schemas of format protobuf"),
        ("format: avro\nheader: confluence", ":2: header: expected 'confluent', got"),
    ],
)
def test_an_invalid_schema_is_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a").write_text("{}")
    (tmp_path / "m.yaml").write_text(text)

    with pytest.raises(BadInput, match=message):
        read_mapping(tmp_path / "m.yaml", "actual")


def test_files_of_a_job_are_stored_as_json(spark: SparkSession, tmp_path: Path) -> None:
    """Each file is read by its own schema, or all by the given one; in-progress files are
    ignored."""
    folder, wider = tmp_path / "out", Schema(texts={"": json.dumps(WIDER)}, place="")
    write_avro_file(folder / "part-0", ORDER, [order(1, "é"), order(2**63 - 1, None)])
    write_avro_file(folder / ".part-1.inprogress", ORDER, [order(7, "x")])
    read_files(spark, folder, into=StoredOutput(path=tmp_path / "own"), source="/o")
    write_avro_file(folder / "part-1", WIDER, [order(2, "b", n=8)])

    with pytest.raises(BadInput, match=r"its schema differs from that of .*at the job's output"):
        read_files(spark, folder, into=StoredOutput(path=tmp_path / "several"), source="/o")
    avro = formats["avro"](wider)
    read_files(
        spark,
        folder,
        into=StoredOutput(path=tmp_path / "one-schema"),
        source="/o",
        declared_format=avro,
    )

    def values(name: str) -> set[str]:
        return {row.value for row in StoredOutput(path=tmp_path / name).frame(spark).collect()}

    assert values("own") == {'{"id":1,"text":"é"}', f'{{"id":{2**63 - 1},"text":null}}'}
    assert values("one-schema") == {
        '{"id":1,"text":"é","n":7}',
        f'{{"id":{2**63 - 1},"text":null,"n":7}}',
        '{"id":2,"text":"b","n":8}',
    }
