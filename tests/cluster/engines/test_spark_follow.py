"""Following a query, with recorded driver events: batches, attempts, executors, restarts."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import JobRejected, engine
from streamquake.cluster.engines.hdfs.namenode import NameNodeUnreachable
from streamquake.cluster.engines.spark import job as spark_job
from streamquake.cluster.engines.spark.driver_listener import (
    DriverEvents,
    DriverState,
    DriverUnreachable,
)
from streamquake.cluster.engines.spark.files import StateFiles
from streamquake.cluster.engines.spark.follow import QueryFollower
from streamquake.cluster.job import CurrentJob, JobSpec
from streamquake.reports.record.event import Action, EventDraft, Kind
from streamquake.topologies.loader import load_topology
from streamquake.topologies.model import Topology
from tests.event_drafts import undeclared_fields
from tests.fakes import fake_cluster

RECORDED = json.loads((Path(__file__).parent / "spark" / "news.json").read_text("utf-8"))
"""The events of a query with state on Spark 4.1 in one process: three batches of one file."""
ENTRIES: list[dict[str, Any]] = RECORDED["news"]
TOPOLOGY = Topology.model_validate(
    {
        "name": "t",
        "services": {
            "spark": {"engine": "spark", "nodes": {"master": 1, "worker": 2, "driver": 1}}
        },
    }
)

WITH_STORE = load_topology("spark-kafka-hdfs")


class Driver:
    """A driver whose listener has these entries; unreachable after `reachable` is False."""

    def __init__(self, entries: Sequence[dict[str, Any]], life: int = 1) -> None:
        self.entries = [{**entry, "n": n} for n, entry in enumerate(entries)]
        self.life = life
        self.reachable = True

    def events(self, after: int) -> DriverEvents:
        return DriverEvents(life=self.life, entries=tuple(self._requested()[after:]))

    def now(self) -> DriverState:
        return DriverState(life=self.life, last={e["what"]: e for e in self._requested()})

    def _requested(self) -> list[dict[str, Any]]:
        if not self.reachable:
            raise DriverUnreachable("refused", not_listening=True)
        return self.entries


def cluster_of(driver: Driver) -> Cluster:
    cluster = fake_cluster(TOPOLOGY)
    cluster.clients["spark"] = driver
    return cluster


class RecordedQuery:
    """A follower, and the events and samples that it recorded."""

    def __init__(self) -> None:
        self.notes: list[EventDraft] = []
        self.samples: list[tuple[str, str, float]] = []
        self.follower = QueryFollower(
            cluster_of(Driver([])),
            "spark",
            "q",
            self.notes.append,
            lambda *sample: self.samples.append(sample),
        )

    def record(self, entries: Sequence[dict[str, Any]], life: int = 1) -> list[EventDraft]:
        """The events recorded for these entries."""
        before = len(self.notes)
        self.follower.record(DriverEvents(life=life, entries=tuple(entries)))
        assert undeclared_fields(self.notes) == []
        return self.notes[before:]

    def actions(self) -> list[Action]:
        return [note.action for note in self.notes]


def entry(what: str, **values: Any) -> dict[str, Any]:
    return {"what": what, "ms": 5_000, **values}


def entries_until(what: str, batch: int) -> list[dict[str, Any]]:
    """The recorded entries up to and including a step of a batch."""
    end = next(n for n, e in enumerate(ENTRIES) if (e["what"], e.get("batch")) == (what, batch))
    return ENTRIES[: end + 1]


def test_the_steps_of_a_batch_are_recorded_in_order() -> None:
    query = RecordedQuery()
    query.record(ENTRIES)
    steps = [n.action for n in query.notes if n.value.get("checkpoint") == 1]
    assert steps == [
        Action.CHECKPOINT_TRIGGERED,
        Action.OFFSET_WRITTEN,
        Action.BATCH_RUNNING,
        Action.SINK_WRITTEN,
        Action.CHECKPOINT_ALL_ACKNOWLEDGED,
        Action.COMMIT_WRITTEN,
        Action.CHECKPOINT_COMPLETED,
    ]


def test_a_committed_batch_is_a_completed_checkpoint_with_its_figures() -> None:
    query = RecordedQuery()
    query.record(ENTRIES)
    first, *_, last = (n for n in query.notes if n.action == Action.CHECKPOINT_COMPLETED)
    assert (first.kind, first.value["checkpoint"], last.value["checkpoint"]) == (Kind.OK, 0, 2)
    assert last.value["input_rows"] == 3
    assert last.value["began_ms"] == 1795346133038
    assert last.value["state_rows"] == 2
    assert last.value["durations_ms"]["addBatch"] > 0
    assert sum(last.value["phases_ms"].values()) == last.value["duration_ms"]
    assert {series for series, _, _ in query.samples} >= {"batch_ms", "batch_rows"}


def test_task_attempts_are_recorded_with_their_node_at_their_end() -> None:
    query = RecordedQuery()
    query.record(ENTRIES)
    attempts = [n.value for n in query.notes if n.action == Action.TASK_ATTEMPT]
    assert len(attempts) == 9
    assert {a["node"] for a in attempts} == {"spark/worker-1"}
    assert {(a["batch"], a["attempt"], a["state"]) for a in attempts} == {
        (batch, 0, "SUCCESS") for batch in range(3)
    }


def test_a_lost_executor_is_recorded_and_the_job_runs_with_the_next_task() -> None:
    query = RecordedQuery()
    query.record(ENTRIES)
    reason = "Command exited with code 137"
    lost, running = query.record(
        [
            entry("executor removed", executor="0", host="spark-worker-2", reason=reason),
            next(e for e in ENTRIES if e["what"] == "task started"),
        ]
    )
    assert (lost.action, lost.value["node"]) == (Action.EXECUTOR_LOST, "spark/worker-2")
    assert lost.error == reason
    assert running.action == Action.JOB_RUNNING


def test_a_restarted_driver_runs_the_failed_batch_again() -> None:
    query = RecordedQuery()
    query.record(entries_until("sink written", 1))
    query.follower.record_driver_end("the driver does not answer")
    query.follower.record_driver_end("the driver does not answer")
    failed = [n for n in query.notes if n.action == Action.CHECKPOINT_FAILED]
    assert [(n.value["checkpoint"], n.value["own"]) for n in failed] == [(1, False)]
    assert query.actions().count(Action.JOB_FAILING) == 1

    again = query.record([], life=2)
    assert [n.action for n in again] == [Action.JOB_RESTARTING]
    rerun = [e for e in ENTRIES if e.get("batch") == 1 and e["what"] != "offset written"]
    started = next(e for e in ENTRIES if e["what"] == "query started")
    recorded = {n.action: n for n in query.record([started, *rerun], life=2)}
    assert recorded[Action.JOB_RESTORED].value["checkpoint"] == 0, "the last committed batch"
    assert recorded[Action.CHECKPOINT_TRIGGERED].value["checkpoint"] == 1
    assert Action.OFFSET_WRITTEN not in recorded, "its offsets are in the log already"
    assert Action.JOB_SUBMITTED not in recorded


def test_a_batch_committed_before_its_driver_ended_is_completed() -> None:
    query = RecordedQuery()
    query.record(entries_until("commit written", 1))
    query.follower.record_driver_end("the driver does not answer")
    ended = {n.value["checkpoint"]: n.action for n in query.notes if n.kind != Kind.INFO}
    assert ended[1] == Action.CHECKPOINT_COMPLETED


class StateFolder:
    """A NameNode with some state files, or one that does not answer."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}
        self.answers = True

    def tree(self, folder: str) -> dict[str, int]:
        assert folder == "/checkpoints/r/state"
        if not self.answers:
            raise NameNodeUnreachable(folder)
        return dict(self.found)


def test_state_files_are_listed_after_a_batch_and_new_ones_are_its_own() -> None:
    cluster, tree = fake_cluster(WITH_STORE), StateFolder()
    cluster.clients["hdfs"] = tree
    values = {"checkpoint": "hdfs://hdfs-namenode-1:8020/checkpoints/r"}
    cluster.run.job = CurrentJob(service="spark", id="q", values=values)
    files = StateFiles(cluster, "q")
    files.await_listing(0)
    assert list(files.poll()) == [], "a query without state"

    tree.found = {"0/0/1.zip": 10, "0/1/1.zip": 20}
    files.await_listing(1)
    (first,) = files.poll()
    assert list(files.poll()) == [], "a batch is listed once"
    tree.found = {"0/0/1.zip": 10, "0/0/2.changelog": 5}
    files.await_listing(2)
    (second,) = files.poll()
    recorded = [
        (observation.action, observation.value["checkpoint"], observation.value["files"])
        for observation in (first, second)
    ]
    assert recorded == [
        (Action.CHECKPOINT_FILES, 1, {"0/0/1.zip": 10, "0/1/1.zip": 20}),
        (Action.CHECKPOINT_FILES, 2, {"0/0/2.changelog": 5}),
    ]
    assert second.value["shared"] == tree.found

    tree.answers = False
    files.await_listing(3)
    assert list(files.poll()) == []


@pytest.mark.parametrize("failing", ["driver", "store"])
def test_an_error_in_either_thread_ends_the_follower(failing: str) -> None:
    """The follower does not wait for its other thread, and raises the error."""
    cluster, driver = fake_cluster(WITH_STORE), Driver(ENTRIES)
    cluster.clients |= {"spark": driver, "hdfs": None}
    if failing == "driver":
        cluster.clients["spark"] = None
    else:
        values = {"checkpoint": "hdfs://hdfs-namenode-1:8020/checkpoints/r"}
        cluster.run.job = CurrentJob(service="spark", id="q", values=values)
    runs: Any = engine("spark")
    with pytest.raises(AttributeError):
        runs.follow(cluster, "spark", "q", lambda note: None, lambda *_: None, threading.Event())


def test_a_failed_query_reports_its_root_cause() -> None:
    query = RecordedQuery()
    reason = "StreamingQueryException: x\n  at a.b(c)\nCaused by: java.io.IOException: no space\n"
    (failing,) = query.record([entry("query ended", run="r", reason=reason)])
    assert failing.action == Action.JOB_FAILING
    assert failing.error == "java.io.IOException: no space"
    assert failing.value["own"]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "has not started"),
        ([entry("query started", id="q")], "no executor on spark-worker-1, spark-worker-2"),
        ([entry("query started", id="q"), entry("query ended", reason="Boom")], "ended: Boom"),
    ],
)
def test_a_query_that_does_not_run_completely_has_a_reason(
    entries: list[dict[str, Any]], words: str
) -> None:
    message = spark_job.pending(cluster_of(Driver(entries)), "spark")
    assert message is not None
    assert words in message


def test_a_query_runs_completely_with_an_executor_on_each_worker_and_a_task() -> None:
    both = {"0": "spark-worker-1", "1": "spark-worker-2"}
    driver = Driver(
        [
            entry("executor added", executor="1", host="spark-worker-2", there=both),
            entry("query started", id="q"),
            entry("task started"),
        ]
    )
    assert spark_job.pending(cluster_of(driver), "spark") is None
    driver.reachable = False
    assert spark_job.pending(cluster_of(driver), "spark") == "refused"


def test_output_is_committed_when_the_query_has_been_idle_since_then() -> None:
    driver = Driver([entry("query started", id="q"), entry("idle")])
    assert spark_job.drain_pending(cluster_of(driver), "spark", 4_000) is None
    assert spark_job.drain_pending(cluster_of(driver), "spark", 4_500) is not None
    busy = Driver([entry("query started", id="q"), entry("idle"), entry("offset written")])
    assert spark_job.drain_pending(cluster_of(busy), "spark", 0) is not None


def progress_entry(*, began_ms: int, rows: int, state: bool = False) -> dict[str, Any]:
    """Spark's progress report of a batch that took five seconds."""
    operator = {
        "operatorName": "o",
        "numRowsTotal": 1,
        "numRowsUpdated": 0,
        "numRowsRemoved": 0,
        "memoryUsedBytes": 1,
        "commitTimeMs": 1,
    }
    return entry(
        "progress",
        progress={
            "batchId": 7,
            "timestamp": datetime.fromtimestamp(began_ms / 1000, UTC).isoformat(),
            "numInputRows": rows,
            "sources": [],
            "durationMs": {"triggerExecution": 5_000},
            "stateOperators": [operator] if state else [],
        },
    )


@pytest.mark.parametrize(
    ("report", "drained"),
    [
        (progress_entry(began_ms=5_000, rows=0), True),
        # It may have polled before the last record.
        (progress_entry(began_ms=4_999, rows=0), False),
        (progress_entry(began_ms=5_000, rows=1), False),
        # Another batch may close more windows.
        (progress_entry(began_ms=5_000, rows=0, state=True), False),
    ],
)
def test_output_of_a_real_time_query_is_committed_after_an_empty_batch(
    report: dict[str, Any], drained: bool
) -> None:
    """In real-time mode one batch follows another, with or without records."""
    driver = Driver([entry("query started", id="q"), report, entry("job")])
    message = spark_job.drain_pending(cluster_of(driver), "spark", 4_000)
    assert (message is None) == drained
    assert drained or "its last batch took 5.0 s" in str(message)


def real_time_entries() -> list[dict[str, Any]]:
    """The recorded batch 1 with its offset log entry at its end, as in real-time mode."""
    batch = [e for e in ENTRIES if e.get("batch") == 1 and e["what"] != "offset written"]
    end = next(n for n, e in enumerate(batch) if e["what"] == "sink written")
    batch.insert(end, {**batch[end], "what": "offset written"})
    progress = next(e for e in ENTRIES if e["what"] == "progress" and e["progress"]["batchId"] == 1)
    return [*batch, progress]


def test_a_batch_with_offsets_logged_at_its_end_is_triggered_by_its_first_job() -> None:
    query = RecordedQuery()
    recorded = query.record(real_time_entries())
    triggered = [n for n in recorded if n.action == Action.CHECKPOINT_TRIGGERED]
    job, written, committed = (
        next(e["ms"] for e in real_time_entries() if e["what"] == what)
        for what in ("job", "sink written", "commit written")
    )
    assert [n.value["trigger_ms"] for n in triggered] == [job]
    (completed,) = (n.value for n in recorded if n.action == Action.CHECKPOINT_COMPLETED)
    assert completed["duration_ms"] == committed - job
    assert completed["phases_ms"] == {
        "waiting": 0,
        "running": written - job,
        "committing": committed - written,
    }


def test_a_batch_without_a_logged_commit_has_the_duration_that_spark_reports() -> None:
    """With asynchronous progress tracking most batches have no logged commit."""
    query = RecordedQuery()
    logged = ("offset written", "sink written", "commit written")
    recorded = query.record([e for e in real_time_entries() if e["what"] not in logged])
    (completed,) = (n.value for n in recorded if n.action == Action.CHECKPOINT_COMPLETED)
    ended_ms = completed["began_ms"] + completed["durations_ms"]["triggerExecution"]
    assert completed["duration_ms"] == ended_ms - completed["trigger_ms"] > 0
    assert completed["phases_ms"] == {
        "waiting": 0,
        "running": completed["duration_ms"],
        "committing": 0,
    }


def test_committed_offsets_stay_known_while_the_driver_is_unreachable() -> None:
    source = {"description": "KafkaV2[Subscribe[in]]", "endOffset": {"in": {"0": 7, "1": 9}}}
    driver = Driver([entry("progress", progress={"sources": [source]})])
    cluster = cluster_of(driver)
    assert spark_job.committed(cluster, "spark", "in") == {0: 7, 1: 9}
    driver.reachable = False
    assert spark_job.committed(cluster, "spark", "in") == {0: 7, 1: 9}
    assert spark_job.committed(cluster, "spark", "other") == {}


def test_committed_offsets_of_a_run_are_not_known_to_the_next_one() -> None:
    source = {"description": "KafkaV2[Subscribe[in]]", "endOffset": {"in": {"0": 7}}}
    driver = Driver([entry("progress", progress={"sources": [source]})])
    cluster = cluster_of(driver)
    with cluster.used_by("first"):
        assert spark_job.committed(cluster, "spark", "in") == {0: 7}
    driver.reachable = False
    with cluster.used_by("second"):
        assert spark_job.committed(cluster, "spark", "in") == {}


def test_a_program_is_submitted_with_the_modules_that_it_imports() -> None:
    cluster = cluster_of(Driver([entry("query started", id="q")]))
    job = JobSpec(name="j", pyspark="print()\n", parallelism=3, config={"spark.x": "1"})
    runs: Any = engine("spark")
    assert runs.submit(cluster, "spark", job) == "q"
    files = cluster.runtime.containers[cluster.node("spark/driver-1").container].files  # type: ignore[attr-defined]
    conf = dict(line.split(" ", 1) for line in files["/opt/spark/job/job.conf"].splitlines())
    assert files["/opt/spark/job/job.py"] == "print()\n"
    assert conf["spark.sql.shuffle.partitions"] == "3"
    assert conf["spark.x"] == "1"
    assert conf["spark.master"] == "spark://spark-master-1:7077"
    for module in conf["spark.submit.pyFiles"].split(","):
        assert module in files


def test_a_program_that_ended_before_its_query_ran_is_rejected() -> None:
    cluster = cluster_of(Driver([]))
    runs: Any = engine("spark")
    put = cluster.runtime.put

    def put_and_kill(container: str, contents: dict[str, str]) -> None:
        put(container, contents)
        if "/opt/spark/job/job.conf" in contents:
            cluster.runtime.kill(container)

    cluster.runtime.put = put_and_kill  # type: ignore[method-assign,assignment]
    with pytest.raises(JobRejected, match="ended before its query ran"):
        runs.submit(cluster, "spark", JobSpec(name="j", pyspark="x\n", parallelism=1))
