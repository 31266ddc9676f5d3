"""Outputs that are not JSON: parsed as the promise describes them, and judged as any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from pyspark.sql import SparkSession

from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.reconcile.reading import stored_topic
from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.format import formats
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.workloads.numbered.records import Record
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile import whole_topic
from tests.harness.reconcile.avro_bytes import number, write_avro_file
from tests.harness.reconcile.avro_bytes import text as avro_text
from tests.harness.reconcile.data_sets import write_rows
from tests.harness.reconcile.protobuf_bytes import integer, text, with_header, write_descriptors
from tests.harness.reconcile.record_tables import record_table
from tests.harness.verdict.checks.test_exactly_once import RECORDS, Testbed

FIELDS = {
    "key": FieldDescriptorProto.TYPE_STRING,
    "seq": FieldDescriptorProto.TYPE_INT64,
    "cents": FieldDescriptorProto.TYPE_UINT64,
}


def message(record: Record) -> bytes:
    fields = text(1, record.key.encode()) + integer(2, record.seq) + integer(3, record.amount * 100)
    return with_header(fields)


class Topic:
    """A topic of messages, read into a run's data as the promise describes."""

    def __init__(self, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.testbed, self.patch = Testbed(spark, folder / "data"), patch
        schema = formats["protobuf"].schema_text(
            write_descriptors(folder / "p", "Sum", fields=FIELDS)
        )
        self.output = Output(
            kafka="sums",
            format="protobuf",
            schema_=schema,
            header="confluent",
            order="seq",
            compare=("amount",),
            map={"amount": "CAST(cents AS BIGINT) div 100"},
        )

    def read(
        self,
        committed: Sequence[bytes | None],
        aborted: Sequence[bytes] = (),
        keys: Sequence[str | None] = (),
    ) -> Topic:
        values = [*committed, *aborted]

        def records(*_: object, committed: bool, starts: object) -> Iterator[pa.Table]:
            rows = [
                ("sums", 0, at, at, keys[at] if keys else None, value, committed, True)
                for at, value in enumerate(values[: len(values) - len(aborted) * committed])
            ]
            yield record_table(rows)

        self.patch.setattr(stored_topic, "topic_records", records)
        whole_topic.read_topic(
            self.testbed.spark,
            "b",
            "sums",
            stable_ends={0: len(committed)},
            ends={0: len(values)},
            into=StoredOutput(path=self.testbed.data / "sums"),
            declared_format=self.output.to_format("o"),
        )
        return self

    def judged(self, expected: str = "SELECT * FROM sent") -> tuple[Outcome, str]:
        promise = JobPromise(outputs={"sums": self.output}, expected=expected)
        result = self.testbed.judged(promise)
        return result.outcome, result.summary


@pytest.fixture
def topic(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topic:
    return Topic(spark, tmp_path, monkeypatch)


def test_a_topic_in_protobuf_is_held(topic: Topic) -> None:
    outcome, summary = topic.read([message(record) for record in RECORDS]).judged()

    assert outcome == Outcome.HELD, summary


@pytest.mark.nightly
def test_anomalies_in_protobuf_are_found(topic: Topic) -> None:
    """One record is missing, one has another amount, one is no message, one was aborted."""
    other = RECORDS[1]._replace(amount=RECORDS[1].amount + 1)
    found = [message(record) for record in (other, *RECORDS[2:])]

    outcome, summary = topic.read([*found, b"none"], [message(RECORDS[0])]).judged()

    assert outcome == Outcome.VIOLATED
    for wording in ("1 lost", "1 changed", "1 phantom"):
        assert wording in summary
    stored = StoredOutput(path=topic.testbed.data / "sums").frame(topic.testbed.spark)
    assert stored.where("NOT committed").count() == 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("deletes", "outcome"), [(None, Outcome.HELD), (b"none", Outcome.VIOLATED)]
)
def test_deleted_records_in_protobuf_do_not_count(
    topic: Topic, deletes: bytes | None, outcome: Outcome
) -> None:
    first = RECORDS[0].key
    topic.output = topic.output.model_copy(
        update={
            "upsert": True,
            "order": None,
            "identity": ("key",),
            "map": {**topic.output.map, "key": "_key"},
        }
    )
    topic.read(
        [*(message(record) for record in RECORDS), deletes],
        keys=[*(record.key for record in RECORDS), first],
    )

    judged = topic.judged(
        f"SELECT key, MAX_BY(amount, seq) AS amount FROM sent WHERE key <> '{first}' GROUP BY key"
    )

    assert judged[0] == outcome, judged


@pytest.mark.nightly
@pytest.mark.parametrize("kept", [{}, {"amount": "CAST(_offset AS BIGINT) * 0"}])
def test_a_delete_without_a_key_is_malformed(topic: Topic, kept: dict[str, str]) -> None:
    output = {"upsert": True, "order": None, "identity": ("key",)}
    topic.output = topic.output.model_copy(
        update={**output, "map": {**topic.output.map, **kept, "key": "_key"}}
    )
    topic.read(
        [*(message(record) for record in RECORDS), None],
        keys=[*(record.key for record in RECORDS), None],
    )
    amount = "0" if kept else "MAX_BY(amount, seq)"

    outcome, summary = topic.judged(
        f"SELECT key, CAST({amount} AS BIGINT) AS amount FROM sent GROUP BY key"
    )

    assert outcome == Outcome.VIOLATED
    assert summary == "1 phantom in sums (kafka)"


def test_json_may_be_named_and_other_formats_must_be() -> None:
    text = Output(kafka="o", format="text", map={"seq": "CAST(value AS BIGINT)"}).to_format("o")

    assert Output(kafka="o", format="json").to_format("o") is None
    assert text is not None
    assert text.name == "text"


def test_times_in_files_keep_their_microseconds(spark: SparkSession, tmp_path: Path) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 123_456)
    write_rows(tmp_path / "out" / "part-0.parquet", [{"at": moment, "none": None}])

    read_files(spark, tmp_path / "out", into=StoredOutput(path=tmp_path / "o"), source="/o")

    whole = StoredOutput(path=tmp_path / "o").frame(spark)
    (row,) = whole.selectExpr("*", "unix_micros(record.at) micros", "record.none").collect()
    assert row.value == '{"at":"2026-01-02T03:04:05.123456Z","none":null}'
    assert (row.file, row.position) == ("part-0.parquet", 0)
    assert (row.micros, row.none) == (moment.replace(tzinfo=UTC).timestamp() * 1e6, None)


def test_files_of_two_formats_are_no_output(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "out" / "part-0.parquet", [{"n": 1}])
    write_rows(tmp_path / "out" / "part-1.json", [{"n": 2}])
    (tmp_path / "out" / "part-2").touch()

    with pytest.raises(BadInput, match=r"of one format: part-0.parquet is parquet, part-1.json is"):
        read_files(spark, tmp_path / "out", into=StoredOutput(path=tmp_path / "o"), source="/o")


def test_fields_of_one_kind_of_null_can_be_kept(spark: SparkSession, tmp_path: Path) -> None:
    null = {"type": "record", "name": "Part", "fields": [{"name": "a", "type": "null"}]}
    parts = {
        "a": "null",
        "list": {"type": "array", "items": "null"},
        "map": {"type": "map", "values": "null"},
        "part": null,
    }
    schema = {
        "type": "record",
        "name": "Nulls",
        "fields": [{"name": name, "type": kind} for name, kind in parts.items()],
    }
    one_null = number(1) + number(0)
    one_key = number(1) + avro_text(b"k") + number(0)
    write_avro_file(tmp_path / "out" / "part-0", schema, [one_null + one_key])

    read_files(spark, tmp_path / "out", into=StoredOutput(path=tmp_path / "o"), source="/o")

    (row,) = StoredOutput(path=tmp_path / "o").frame(spark).collect()
    assert row.value == '{"a":null,"list":[null],"map":{"k":null},"part":{"a":null}}'
    assert row.record.asDict(recursive=True) == {
        "a": None,
        "list": [None],
        "map": {"k": None},
        "part": {"a": None},
    }


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["json", "parquet"])
@pytest.mark.parametrize(("hour", "outcome"), [(7, Outcome.HELD), (8, Outcome.VIOLATED)])
def test_columns_in_folder_names_are_read(
    spark: SparkSession, tmp_path: Path, kind: str, hour: int, outcome: Outcome
) -> None:
    """As Flink or Spark writes a partitioned table: the columns are not in the files."""
    for day in range(2):
        rows = [{"key": each.key, "seq": each.seq} for each in RECORDS if each.seq % 2 == day]
        write_rows(
            tmp_path / "out" / f"day=2026-01-0{day + 1}" / "hour=07" / f"part-0.{kind}", rows
        )
    dataset = Testbed(spark, tmp_path / "data")
    read_files(spark, tmp_path / "out", into=StoredOutput(path=dataset.data / "o"), source="/o")
    output = Output(
        hdfs="/o",
        identity=("key", "seq", "day", "text"),
        compare=("hour",),
        map={"text": "CAST(day AS STRING)"},
    )
    day_of = "CASE seq % 2 WHEN 0 THEN DATE'2026-01-01' ELSE DATE'2026-01-02' END"

    sent = f"SELECT *, {day_of} AS day FROM sent"
    expected = f"SELECT *, CAST(day AS STRING) AS text, {hour} AS hour FROM ({sent})"
    result = dataset.judged(JobPromise(outputs={"o": output}, expected=expected))

    assert result.outcome == outcome, result.summary
