"""Outputs are read while the job commits its last records, and the rest after the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.reconcile.reading import stored_topic
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.run.output_collector import EarlyReads, collect_outputs
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.run_folder import RunFolder
from tests.fakes import fake_cluster
from tests.harness.histories import experiment
from tests.harness.reconcile.record_tables import record_table

NO_SPARK: Any = None
AVRO = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'


class Topics:
    """Topics of one partition, whose every offset is a committed record."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.reads: list[tuple[str, int, int]] = []
        self.broken = False

    def end_offsets(self, _: object, __: str, topic: str, *, committed: bool = True) -> Any:
        return {0: self.ends[topic]}

    def records(
        self, brokers: str, topic: str, ends: Mapping[int, int], *, committed: bool, starts: Any
    ) -> Iterator[pa.Table]:
        if self.broken:
            raise KafkaUnreachable(f"{brokers} does not answer")
        start = starts.get(0, 0)
        self.reads.append((topic, start, ends[0]))
        rows = [(topic, 0, at, at, b"k", b"{}", committed, True) for at in range(start, ends[0])]
        yield record_table(rows)


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    stub = Topics()
    monkeypatch.setattr(kafka_admin, "end_offsets", stub.end_offsets)
    monkeypatch.setattr(kafka_admin, "bootstrap", lambda *_: "b:9092")
    monkeypatch.setattr(stored_topic, "topic_records", stub.records)
    return stub


def folder_below(path: Path) -> RunFolder:
    """The folder of a run that recorded nothing yet."""
    folder = RunFolder.create(path, "r")
    HistoryWriter(folder.history).close()
    return folder


def with_outputs(**outputs: Output) -> Experiment:
    plan = experiment()
    assert plan.job is not None
    promise = JobPromise(outputs=outputs, expected="SELECT * FROM sent")
    return plan.model_copy(update={"job": plan.job.model_copy(update={"promise": promise})})


def test_the_read_after_the_run_begins_where_the_early_one_ended(
    topics: Topics, tmp_path: Path
) -> None:
    plan, folder = with_outputs(copies=Output(kafka="c")), folder_below(tmp_path)
    topics.ends["c"] = 5
    cluster = fake_cluster()
    early = EarlyReads(cluster, plan, folder)
    assert early.of("copies") is not None
    topics.ends["c"] = 8

    collect_outputs(cluster, plan, NO_SPARK, folder, early)

    assert topics.reads == [("c", 0, 5), ("c", 5, 8)]
    stored = StoredOutput(path=folder.data / "copies")
    assert (stored.facts()["records"], stored.rows()) == (8, 8)


def test_a_topic_that_could_not_be_read_early_is_read_after_the_run(
    topics: Topics, tmp_path: Path
) -> None:
    plan, folder = with_outputs(copies=Output(kafka="c")), folder_below(tmp_path)
    topics.ends["c"], topics.broken = 5, True
    cluster = fake_cluster()
    early = EarlyReads(cluster, plan, folder)
    assert early.of("copies") is None
    topics.broken = False

    collect_outputs(cluster, plan, NO_SPARK, folder, early)

    assert topics.reads == [("c", 0, 5)]
    assert StoredOutput(path=folder.data / "copies").rows() == 5


def test_only_topics_of_json_are_read_early(topics: Topics, tmp_path: Path) -> None:
    declared = Output(kafka="a", format="avro", schema=AVRO)  # type: ignore[call-arg]
    plan = with_outputs(files=Output(hdfs="/out"), records=declared, copies=Output(kafka="c"))
    topics.ends |= {"a": 5, "c": 5}
    early = EarlyReads(fake_cluster(), plan, folder_below(tmp_path))

    read = [name for name in plan.promise.outputs if early.of(name) is not None]

    assert read == ["copies"]
    assert topics.reads == [("c", 0, 5)]


def test_without_an_early_read_an_output_is_read_at_once(topics: Topics, tmp_path: Path) -> None:
    plan, folder = with_outputs(copies=Output(kafka="c")), folder_below(tmp_path)
    topics.ends["c"] = 5

    collect_outputs(fake_cluster(), plan, NO_SPARK, folder)

    assert topics.reads == [("c", 0, 5)]
    assert StoredOutput(path=folder.data / "copies").facts()["ends"] == {"0": 5}
