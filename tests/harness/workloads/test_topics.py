"""Loads of several topics: their order, what is sent where, and what `sent` holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.job_placeholders import placeholders
from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of_plan,
    load_experiment,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.expected_output import expectations, possible_input, register_sent
from streamquake.harness.workloads.data_sets.sender import DataSetSender
from streamquake.harness.workloads.sending.pace import OwnPace
from streamquake.harness.workloads.sending.sender import producer_settings
from streamquake.harness.workloads.topics import Topics
from streamquake.harness.workloads.topics.merge import in_order_of_time
from streamquake.reports.record.event import Action
from streamquake.reports.record.experiment_identity import compared_keys
from streamquake.topologies.problems import BadInput
from tests.harness.histories import Story

ORDERS = "template: {records: 4, rate_per_s: 2, key: id, fields: {id: {sequence: {}}}}"
PAYMENTS = "recorded: {file: payments.jsonl, rate_per_s: 1, partitions: 2}"
DOCUMENT = """\
name: joined
topology: kafka-only
workload: {{topics: {{of: {{orders: {{{orders}}}, payments: {{{payments}}}}}}}}}
"""


def experiment_in(folder: Path, orders: str = ORDERS, payments: str = PAYMENTS) -> Experiment:
    (folder / "payments.jsonl").write_text('{"id": 7, "by": "card"}\n{"id": 8, "by": "cash"}\n')
    (folder / "joined.yaml").write_text(DOCUMENT.format(orders=orders, payments=payments))
    return load_experiment(str(folder / "joined.yaml"), seed=1)


def load_of(experiment: Experiment) -> Topics:
    assert isinstance(experiment.workload, Topics)
    return experiment.workload


def problem_of(folder: Path, **parts: str) -> tuple[str, str]:
    with pytest.raises(BadInput) as rejected:
        experiment_in(folder, **parts)
    (problem,) = rejected.value.problems
    return problem.path, problem.message


times = st.lists(st.integers(0, 50), max_size=20).map(sorted)


@given(st.lists(times, min_size=1, max_size=4))
def test_records_are_merged_by_their_times(after_ns: list[list[int]]) -> None:
    indexes = in_order_of_time(after_ns)
    merged = sorted(
        (index, at, load)
        for load, (times, own) in enumerate(zip(after_ns, indexes, strict=True))
        for at, index in zip(times, own, strict=True)
    )
    assert [index for index, _, _ in merged] == list(range(sum(map(len, after_ns))))
    assert [(at, load) for _, at, load in merged] == sorted((at, load) for _, at, load in merged)
    assert all(list(own) == sorted(own) for own in indexes)


def test_each_record_is_sent_to_its_topic_at_the_time_of_its_load(tmp_path: Path) -> None:
    load = load_of(experiment_in(tmp_path))
    assert (load.planned, load.seconds) == (6, 2)
    assert load.topics() == {"orders": 4, "payments": 2}
    records, after_ns = load.in_order(seed=1)
    assert [(r.index, r.topic, json.loads(r.text or b"")["id"]) for r in records] == [
        (0, "orders", 0),
        (1, "payments", 7),
        (2, "orders", 1),
        (3, "orders", 2),
        (4, "payments", 8),
        (5, "orders", 3),
    ]
    assert after_ns == [0, 0, 500_000_000, 1_000_000_000, 1_000_000_000, 1_500_000_000]
    assert [r.key for r in records if r.topic == "orders"] == ["0", "1", "2", "3"]
    assert [r.partition for r in records if r.topic == "payments"] == [0, 1]


def test_the_records_of_all_topics_are_sent_by_one_client(tmp_path: Path) -> None:
    sent: list[tuple[Any, ...]] = []

    class Recording(Producer):
        def produce(self, *record: Any, **more: Any) -> None:
            sent.append(record)
            super().produce(*record, **more)

    records, _ = load_of(experiment_in(tmp_path)).in_order(seed=1)
    sender = DataSetSender(
        records,
        OwnPace([0] * len(records)),
        producer=Recording(
            {**producer_settings(KafkaConnection(""), 5), "test.mock.num.brokers": 1}
        ),
        topic="orders",
        clock=SystemClock(),
        record_event=lambda draft: None,
        measure=lambda *sample: None,
    ).begin()
    sender._thread.join(30)
    assert (sender.done, sender.failure, sender.sent) == (True, None, 6)
    assert sent == [(r.topic, r.text, r.key, r.partition) for r in records]


def test_a_program_names_each_topic(tmp_path: Path) -> None:
    values = placeholders(experiment_in(tmp_path), "run")
    assert (values["input.orders"], values["input.payments"]) == ("orders", "payments")
    assert "input" not in values, "it would be one of two"


def test_the_plan_is_the_same_after_it_was_recorded(tmp_path: Path) -> None:
    experiment = experiment_in(tmp_path)
    experiment.workload.store(tmp_path / "data", experiment.seed)
    document = experiment_document(experiment)
    assert experiment_of_plan(document, "run.json", seed=1) == experiment
    (tmp_path / "payments.jsonl").unlink()
    again = load_of(experiment).with_stored(tmp_path / "data")
    assert again.in_order(seed=1) == load_of(experiment_in(tmp_path)).in_order(seed=1)
    assert compared_keys(document)


def test_a_smaller_experiment_has_the_files_beside_it(tmp_path: Path) -> None:
    load = load_of(experiment_in(tmp_path))
    (smaller := tmp_path / "smaller").mkdir()
    written = load.written_beside(smaller)
    place = ("workload", "topics", "of", "payments", "recorded", "file")
    assert written.file_places() == {place: "payments/records.jsonl"}
    assert (smaller / "payments" / "records.jsonl").read_text().count("\n") == 2


@pytest.mark.spark
def test_sent_has_the_records_of_each_topic_in_its_own_column(
    tmp_path: Path, spark: SparkSession
) -> None:
    experiment = experiment_in(tmp_path)
    experiment.workload.store(tmp_path, experiment.seed)
    history = (
        Story()
        .at(1, Action.SENT, first=0, last=3, count=4, status="acknowledged")
        .at(1, Action.SENT, first=4, last=4, count=1, status="failed")
        .at(1, Action.SENT, first=5, last=5, count=1, status="unknown")
        .at(2, Action.WORKLOAD_DONE, acknowledged=4, failed=1, unknown=1)
        .history()
    )
    case = JudgedRun(
        experiment=experiment,
        history=history,
        data=tmp_path,
        metrics=tmp_path / "none",
        spark=lambda: spark,
    )
    sent = possible_input(case)
    assert sent.columns == ["topic", "orders", "payments", "index", "status"]
    rows: list[dict[str, Any]] = [row.asDict(True) for row in sent.orderBy("index").collect()]
    assert [(r["index"], r["topic"], r["status"]) for r in rows] == [
        (0, "orders", "acknowledged"),
        (1, "payments", "acknowledged"),
        (2, "orders", "acknowledged"),
        (3, "orders", "acknowledged"),
        (5, "orders", "unknown"),
    ]
    assert [r["orders"] for r in rows] == [{"id": 0}, None, {"id": 1}, {"id": 2}, {"id": 3}]
    assert rows[1]["payments"] == {"by": "card", "id": 7}


def test_without_a_job_each_topic_is_an_output(tmp_path: Path) -> None:
    outputs = experiment_in(tmp_path).promise.outputs
    assert {name: output.kafka for name, output in outputs.items()} == {
        "orders": "orders",
        "payments": "payments",
    }
    assert outputs["orders"].identity == ("id",)
    assert outputs["payments"].expected == (
        "SELECT sent.`payments`.*, status FROM sent WHERE topic = 'payments'"
    )


@pytest.mark.spark
@pytest.mark.nightly_after(2)
@pytest.mark.parametrize("topic", ["sent", "Sent", "history", "id", "sent.id"])
def test_a_topic_may_be_called_like_a_relation_or_a_field(
    tmp_path: Path, spark: SparkSession, topic: str
) -> None:
    experiment = experiment_in(tmp_path, payments=f"{PAYMENTS}}}, {topic}: {{{ORDERS}")
    experiment.workload.store(tmp_path, experiment.seed)
    told = Story().at(1, Action.SENT, first=0, last=9, count=10, status="acknowledged")
    case = JudgedRun(
        experiment=experiment,
        history=told.history(),
        data=tmp_path,
        metrics=tmp_path / "none",
        spark=lambda: spark,
    )
    register_sent(case)
    with expectations(case) as expected:
        rows = expected[topic].orderBy("id").collect()
    assert [(row["id"], row["status"]) for row in rows] == [
        (number, "acknowledged") for number in range(4)
    ]


@pytest.mark.parametrize("topic", ["_orders", "-orders", ".orders", "Input.Topic"])
def test_a_topic_without_a_job_has_the_name_of_an_output(tmp_path: Path, topic: str) -> None:
    place, message = problem_of(tmp_path, payments=f"{PAYMENTS}}}, {topic}: {{{ORDERS}")
    assert place == "workload.topics"
    assert message == (
        f'without a job each topic is an output of its name, and "{topic}" is no name for one; '
        "rename it, or give the experiment a job"
    )


AT = "workload.topics.of"


@pytest.mark.parametrize(
    ("parts", "place", "message"),
    [
        ({"orders": "numbered: {records: 1}"}, f"{AT}.orders.numbered", "unknown key"),
        ({"orders": f"{ORDERS}, {PAYMENTS}"}, f"{AT}.orders", "expected one of template, recorded"),
        (
            {"payments": "recorded: {file: none.jsonl}"},
            f"{AT}.payments.recorded",
            "none.jsonl",
        ),
        (
            {"payments": "recorded: {file: payments.jsonl, format: avro}"},
            f"{AT}.payments.recorded",
            "schema",
        ),
        (
            {"payments": "recorded: {file: payments.jsonl, topic: other}"},
            f"{AT}",
            'its load names the topic "other"; leave it out',
        ),
        (
            {"payments": f"{PAYMENTS}}}, Orders: {{{PAYMENTS}"},
            f"{AT}",
            'the fields "orders" and "Orders" differ in case only',
        ),
        (
            {"payments": f"{PAYMENTS}}}, Topic: {{{PAYMENTS}"},
            f"{AT}",
            'the topic "Topic" has the name of a column of `sent`',
        ),
    ],
)
def test_loads_that_cannot_be_sent_are_rejected_with_their_place(
    tmp_path: Path, parts: dict[str, str], place: str, message: str
) -> None:
    path, found = problem_of(tmp_path, **parts)
    assert path == place
    assert message in found
