"""A recorded data set: what is read, sent and expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of_plan,
    load_experiment,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.expected_output import has_unsettled_sends, possible_input
from streamquake.harness.workloads.data_sets.data_set import DataSet, read_data_set
from streamquake.harness.workloads.data_sets.sender import DataSetSender
from streamquake.harness.workloads.data_sets.workload import STORED
from streamquake.harness.workloads.recorded import Recorded
from streamquake.harness.workloads.sending.pace import EvenPace
from streamquake.harness.workloads.sending.ranges import SendRange, SendStatus, sent_ranges
from streamquake.harness.workloads.sending.sender import producer_settings
from streamquake.reports.record.event import Action, Event, EventDraft
from streamquake.reports.record.experiment_identity import compared_keys
from streamquake.reports.record.history import History
from streamquake.topologies.problems import BadInput
from tests.harness.histories import Story

ORDERS = [
    {"customer": "ann", "id": 1, "total": 1.5, "tags": ["a", {"b": 1.10}]},
    {"customer": "bob", "id": 2, "total": 7, "paid": True},
    {"customer": None, "id": 3, "total": -0.25, "note": "é\n"},
]
DOCUMENT = """\
name: orders
topology: flink-kafka-hdfs
job: {sql: copy.sql}
workload: {recorded: {file: orders.jsonl, rate_per_s: 1000, key: customer}}
"""


def orders_in(folder: Path, *lines: str) -> Path:
    file = folder / "orders.jsonl"
    text = "\n".join(lines or map(json.dumps, ORDERS)) + "\n"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return file


def experiment_in(folder: Path, document: str = DOCUMENT) -> Experiment:
    path = folder / "orders.yaml"
    path.write_text(document)
    return load_experiment(str(path), seed=1)


def load_of(experiment: Experiment) -> Recorded:
    assert isinstance(experiment.workload, Recorded)
    return experiment.workload


def problem_of(folder: Path, document: str = DOCUMENT) -> str:
    with pytest.raises(BadInput) as rejected:
        experiment_in(folder, document)
    (problem,) = rejected.value.problems
    assert problem.path == "workload.recorded"
    return problem.message


def test_the_plan_holds_types_count_and_checksum(tmp_path: Path) -> None:
    orders_in(tmp_path)
    load = load_of(experiment_in(tmp_path))
    assert load.columns == {
        "customer": "STRING",
        "id": "BIGINT",
        "total": "DOUBLE",
        "tags": "JSON",
        "paid": "BOOLEAN",
        "note": "STRING",
    }
    assert (load.planned, load.seconds) == (3, 0.003)
    assert load.sha256 == read_data_set(Path(load.file)).sha256


def test_a_plan_is_read_without_its_file(tmp_path: Path) -> None:
    file = orders_in(tmp_path)
    experiment = experiment_in(tmp_path)
    file.unlink()
    plan = experiment_document(experiment)
    assert load_of(experiment_of_plan(plan, str(tmp_path / "run.json"), seed=1)) == load_of(
        experiment
    )


def test_a_file_that_changed_since_the_plan_is_bad_input(tmp_path: Path) -> None:
    file = orders_in(tmp_path)
    load = load_of(experiment_in(tmp_path))
    file.write_text(file.read_text().replace("1", "2"))
    with pytest.raises(BadInput, match="its lines have changed") as rejected:
        load.store(tmp_path / "data", 1)
    assert str(rejected.value).startswith(str(file))


def test_a_run_is_repeated_with_the_lines_that_it_stored(tmp_path: Path) -> None:
    file = orders_in(tmp_path)
    load = load_of(experiment_in(tmp_path))
    load.store(tmp_path / "data", 1)
    file.unlink()
    again = load.with_stored(tmp_path / "data")
    assert (again.sha256, again.records) == (load.sha256, 3)
    assert read_data_set(Path(again.file)).lines == [json.dumps(o).encode() for o in ORDERS]

    DataSet(lines=[b"{}"] * 3, sha256="").store(tmp_path / "data" / STORED, {})
    with pytest.raises(ValueError, match="its lines have changed"):
        load.with_stored(tmp_path / "data")


def test_a_repeated_run_counts_as_the_same_experiment(tmp_path: Path) -> None:
    orders_in(tmp_path)
    experiment = experiment_in(tmp_path)
    experiment.workload.store(tmp_path / "data", 1)
    load = experiment.workload.with_stored(tmp_path / "data")
    again = experiment.model_copy(update={"workload": load})
    key = compared_keys(experiment_document(experiment))
    assert compared_keys(experiment_document(again)) == key

    orders_in(tmp_path, '{"customer": "ann"}')
    assert compared_keys(experiment_document(experiment_in(tmp_path))) != key


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{}", "[1]"], "record 2: expected a JSON object, got [1]"),
        (["{}", "", "{}"], "record 2: expected a JSON object: Expecting value"),
        (['{"a": 1} {"a": 2}'], "record 1: expected a JSON object: Extra data"),
        (['{"a": 1, "a": 2}'], 'the field "a" is there twice'),
        (['{"a": NaN}'], "NaN is no JSON number"),
        (['{"a": "\udcff"}'], "can't decode byte 0xff"),
        (["[" * 100_000], "expected a JSON object"),
        (['{"customer": "a", "Index": 1}'], 'the field "Index" has a reserved name; rename it'),
        (['{"customer": "a", "CUSTOMER": 1}'], '"customer" and "CUSTOMER" differ in case only'),
        (['{"customer": "a", "b`c": 1}'], "without backticks"),
        (['{"customer": 1.5}'], "record 1: the key customer is 1.5; expected text or a whole"),
        (['{"customer": true}'], "the key customer is true"),
        (['{"other": 1}'], "no record has the field customer of `key`"),
        ([" "], "it has no records"),
    ],
)
def test_lines_that_cannot_be_sent_are_rejected_with_their_place(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    file = orders_in(tmp_path, *lines)
    found = problem_of(tmp_path)
    assert found.startswith(f"{file}: ")
    assert message in found


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("file: none.jsonl", "there is no such file in"),
        ("file: orders.yaml", "expected records in a file .jsonl, .json, .ndjson, .csv"),
        ("records: 4", "it has 3 records, expected 4"),
        (f"sha256: {'a' * 64}", "its lines have changed: their checksum is"),
        ("columns: {id: INT, total: BIGINT}", "record 1: total is 1.5, which is not exactly"),
    ],
)
def test_settings_that_the_file_contradicts_are_rejected(
    tmp_path: Path, setting: str, message: str
) -> None:
    orders_in(tmp_path)
    settings = {"file": "orders.jsonl", "rate_per_s": 9}
    name = setting.partition(":")[0]
    written = ", ".join([f"{k}: {v}" for k, v in settings.items() if k != name] + [setting])
    document = f"name: x\ntopology: kafka-only\nworkload: {{recorded: {{{written}}}}}\n"
    assert message in problem_of(tmp_path, document)


def test_faults_of_the_data_are_rejected(tmp_path: Path) -> None:
    orders_in(tmp_path)
    fault = "faults: [{skew: {hot_share: 0.5}, target: the workload, at_s: 1, for_s: 1}]\n"
    with pytest.raises(BadInput, match="recorded sends records as they are"):
        experiment_in(tmp_path, DOCUMENT + fault)


@pytest.mark.parametrize(
    "check",
    ["continuity: {within_s: 5}", "latency: {p50_within_s: 1}", "bounded_loss: {at_most: 1}"],
)
def test_checks_that_need_generated_keys_are_rejected(tmp_path: Path, check: str) -> None:
    orders_in(tmp_path)
    with pytest.raises(BadInput, match="and the workload is recorded") as rejected:
        experiment_in(tmp_path, f"{DOCUMENT}checks: [{{{check}}}]\n")
    assert rejected.value.problems[0].path == f"checks[0].{check.partition(':')[0]}"


def test_without_a_job_fields_must_be_comparable(tmp_path: Path) -> None:
    orders_in(tmp_path, '{"customer": "a", "n": 1}', '{"customer": "b", "n": 2.5}')
    document = "name: x\n" + DOCUMENT[DOCUMENT.index("workload") :] + "topology: kafka-only\n"
    promise = experiment_in(tmp_path, document).promise
    assert promise.outputs["input"].identity == ("customer", "n")

    orders_in(tmp_path, '{"customer": "a", "n": 1}', '{"customer": "b", "n": "2"}')
    found = problem_of(tmp_path, document)
    assert found.startswith("without a job the records are compared field by field, and n has obj")

    orders_in(tmp_path, '{"customer": "a", "_key": 1}')
    assert problem_of(tmp_path, document).startswith("without a job _key may be taken for a column")


def test_keys_choose_partitions_as_java_does() -> None:
    lines = [b'{"k": "21"}', b'{"k": 21}', b'{"k": "foobar"}', b"{}", b"{}"]
    records = list(DataSet(lines=lines, sha256="").outgoing("k", 6))
    # The hashes are those of Kafka's own tests of its murmur2.
    of_21, of_foobar = -973932308 & 0x7FFFFFFF, -790332482 & 0x7FFFFFFF
    assert [r.key for r in records] == ["21", "21", "foobar", None, None]
    assert [r.partition for r in records] == [of_21 % 6, of_21 % 6, of_foobar % 6, 3, 4]


def test_every_line_is_sent_once_and_unchanged() -> None:
    drafts: list[EventDraft] = []
    lines = [json.dumps({"n": n}).encode() for n in range(500)]
    sent: list[tuple[Any, ...]] = []

    class Recording(Producer):
        def produce(self, *record: Any, **more: Any) -> None:
            sent.append(record)
            super().produce(*record, **more)

    sender = DataSetSender(
        list(DataSet(lines=lines, sha256="").outgoing("n", 4)),
        EvenPace(10_000, 0),
        producer=Recording(
            {**producer_settings(KafkaConnection(""), 5), "test.mock.num.brokers": 1}
        ),
        topic="orders",
        clock=SystemClock(),
        record_event=drafts.append,
        measure=lambda *sample: None,
    ).begin()
    sender._thread.join(30)

    assert (sender.done, sender.failure, sender.steering) == (True, None, None)
    assert [value for _, value, _, _ in sent] == lines
    assert {(topic, key) for topic, _, key, _ in sent} == {("orders", str(n)) for n in range(500)}
    fields = ("at_ns", "process", "kind", "action", "value", "error")
    history = History(
        Event(index=n, **{name: getattr(draft, name) for name in fields})
        for n, draft in enumerate(drafts)
    )
    assert sent_ranges(history, 500) == [SendRange(0, 499, SendStatus.ACKNOWLEDGED)]


def case_of(experiment: Experiment, history: History, data: Path, spark: Any) -> Any:
    return JudgedRun(
        experiment=experiment,
        history=history,
        data=data,
        metrics=data / "none",
        spark=lambda: spark,
    )


def test_sends_of_unknown_result_stay_unsettled(tmp_path: Path) -> None:
    orders_in(tmp_path)
    history = Story().sent(1, 3, "unknown").at(2, Action.WORKLOAD_DONE, unknown=3).history()
    case = case_of(experiment_in(tmp_path), history, tmp_path, None)
    (tmp_path / "input.topic").mkdir()
    (tmp_path / "input.topic" / "read.json").write_text("{}")
    assert has_unsettled_sends(case)


def test_the_records_sent_have_exact_values(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        '{"id": 1, "price": 1.10, "exact": 12345678901234567890.50, "any": {"b": [1.10, "x"]}}',
        '{"id": 2, "price": 3, "exact": 7, "any": 1.50}',
        '{"id": 3, "any": "text", "exact": null}',
        '{"id": 4, "any": true, "price": 0.1}',
    ]
    orders_in(tmp_path, *lines)
    document = DOCUMENT.replace("key: customer", 'columns: {exact: "DECIMAL(38,2)"}')
    experiment = experiment_in(tmp_path, document)
    experiment.workload.store(tmp_path, 1)
    story = Story().at(1, Action.SENT, first=0, last=1, count=2, status="acknowledged")
    story.at(1, Action.SENT, first=2, last=2, count=1, status="failed")
    story.at(1, Action.SENT, first=3, last=3, count=1, status="unknown")
    history = story.at(2, Action.WORKLOAD_DONE, acknowledged=2, failed=1, unknown=1).history()

    frame = possible_input(case_of(experiment, history, tmp_path, spark)).orderBy("index")

    assert [field.simpleString() for field in frame.schema] == [
        "id:bigint",
        "price:double",
        "exact:decimal(38,2)",
        "any:string",
        "index:bigint",
        "status:string",
    ]
    assert [(str(r.exact), r.price, r.any, r.status) for r in frame.collect()] == [
        ("12345678901234567890.50", 1.1, '{"b":[1.10,"x"]}', "acknowledged"),
        ("7.00", 3.0, "1.50", "acknowledged"),
        ("None", 0.1, "true", "unknown"),
    ]


def test_a_part_of_the_records_sent_is_not_judged(spark: SparkSession, tmp_path: Path) -> None:
    orders_in(tmp_path)
    experiment = experiment_in(tmp_path)
    DataSet(lines=[b"{}"] * 2, sha256="").store(tmp_path / STORED, load_of(experiment).columns)
    history = Story().sent(1, 3).history()
    with pytest.raises(ValueError, match="has 2 records, and 3 were to be sent"):
        possible_input(case_of(experiment, history, tmp_path, spark))


def test_the_example_can_be_run() -> None:
    folder = Path(__file__).parents[3] / "examples" / "recorded"
    load = load_of(load_experiment(str(folder / "spending.yaml"), seed=1))
    assert (load.records, load.columns["note"], load.columns["cents"]) == (2000, "STRING", "BIGINT")


@pytest.mark.parametrize(
    ("lines", "types"),
    [
        (['{"a": null}', '{"a": 1}'], {"a": "BIGINT"}),
        (["{}", '{"a": null}', '{"a": 1.5}', '{"a": 2}'], {"a": "DOUBLE"}),
        (['{"a": null}'], {"a": "STRING"}),
        (['{"a": null}', '{"a": 1}', '{"a": "x"}'], {"a": "JSON"}),
        (['{"a": 0.5}', '{"a": 9007199254740993}'], {"a": "JSON"}),
        (['{"a": 0.10000000000000001}', '{"a": 2.98023223876953125E-8}'], {"a": "DOUBLE"}),
        (['{"a": 0.1000000000000000000001}'], {"a": "JSON"}),
        (['{"é.x y": 1, "ß": 2, "SS": 3}'], {"é.x y": "BIGINT", "ß": "BIGINT", "SS": "BIGINT"}),
    ],
)
def test_types_follow_from_all_values(lines: list[str], types: dict[str, str]) -> None:
    assert DataSet.of(line.encode() for line in lines).columns({}) == types


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": 1e-9999999}', "the exponent of 1e-9999999 is beyond 999"),
        ('{"a": 0e9999999}', "the exponent of 0e9999999 is beyond 999"),
        ('{"a": [1e99999999999999999999]}', "the exponent of 1e99999999999999999999 is beyond 999"),
        ('{"a": "\\ud800"}', "half of a surrogate pair is no text"),
        ('{"\\uDFFF": 1}', "half of a surrogate pair is no text"),
        (f'{{"a": {"[" * 700}{"]" * 700}}}', "it is nested too deeply"),
        (f'{{"a": "{"x" * 900_000}"}}', "900,009 bytes; records of up to 900,000 are sent"),
    ],
)
def test_what_cannot_be_stored_or_sent_is_rejected_before(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^record 2: .*{message}"):
        DataSet.of([b"{}", line.encode()]).columns({})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x" * 65], "names of up to 64 characters"),
        (["a\tb"], "control characters"),
        ([""], "names of up to 64 characters"),
        (["ındex"], "reserved name"),
        (["i", "ı"], "differ in case only"),
        (["s", "ſ"], "differ in case only"),
        (["σ", "ς"], "differ in case only"),
        (["İ", "i"], "differ in case only"),
    ],
)
def test_names_that_spark_confuses_are_rejected(names: list[str], message: str) -> None:
    line = json.dumps(dict.fromkeys(names, 1)).encode()
    with pytest.raises(ValueError, match=message):
        DataSet.of([line]).columns({})


@pytest.mark.parametrize(
    ("lines", "columns", "message"),
    [
        (["{}"], {}, "its records have no fields"),
        (['{"a": 1}'], {"b": "INT"}, "no record has the field b of `columns`"),
    ],
)
def test_columns_without_values_are_rejected(
    lines: list[str], columns: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        DataSet.of(line.encode() for line in lines).columns(columns)


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert DataSet.of([b'{"a": "\\ud83d\\ude00"}']).columns({}) == {"a": "STRING"}


def test_zeros_with_exponents_are_stored(tmp_path: Path) -> None:
    found = DataSet.of(b'{"a": %s}' % n for n in (b"-0e50", b"0e-40", b"1e2", b"1.10", b"-0.0"))
    columns = found.columns({"a": "DECIMAL(5,2)"})
    found.store(tmp_path, columns)
    stored = pq.read_table(tmp_path / "records.parquet")["a"].to_pylist()
    assert [str(abs(value)) for value in stored] == ["0.00", "0.00", "100.00", "1.10", "0.00"]


def test_a_record_with_other_fields_than_its_plan_is_not_judged(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders_in(tmp_path)
    experiment = experiment_in(tmp_path)
    experiment.workload.store(tmp_path, 1)
    fewer = experiment.workload.model_copy(update={"columns": {"id": "BIGINT"}})
    changed = experiment.model_copy(update={"workload": fewer})
    with pytest.raises(ValueError, match="has other fields than the plan of the run"):
        possible_input(case_of(changed, Story().sent(1, 3).history(), tmp_path, spark))
