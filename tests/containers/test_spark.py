"""The Spark engine on real containers: all tests share one cluster, each with its own program."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.engines.engine import JobRejected
from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka import engine as kafka
from streamquake.cluster.engines.spark.engine import SparkEngine
from streamquake.cluster.images.build import ensure
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.job import CurrentJob, JobSpec
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.images import DockerImages
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.catalogue.kill_executor import KillExecutor
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.reconcile.reading.spark_sink_log import uncommitted_files
from streamquake.reports.record.event import Action, EventDraft
from streamquake.topologies.loader import load_topology
from streamquake.topologies.named_files import JOBS
from streamquake.topologies.templates import render
from tests.containers.test_engines import (
    KEYS,
    by_identity,
    expected_totals,
    health,
    read_committed,
    record,
)
from tests.injecting import FaultInjector
from tests.pace import at_pace, wait_until

pytestmark = pytest.mark.container

RECORDS = 1_000
ENGINE = SparkEngine()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    ensure([recipe(k) for k in ("toolbox", "kafka", "hdfs", "spark")], DockerImages(), print)
    new_cluster = Cluster(
        run_id=f"spark-{secrets.token_hex(3)}",
        topology=load_topology("spark-kafka-hdfs"),
        runtime=DockerRuntime(),
        clock=SystemClock(),
    )
    owner = {labels.OWNER: labels.owner_of_this_process()}
    try:
        start_cluster(new_cluster, tags=owner, limit_s=at_pace(240), show_message=print)
        yield new_cluster
    finally:
        assert remove_cluster(new_cluster.runtime, new_cluster.run_id) == []


def test_every_node_but_the_driver_passes_its_health_check(cluster: Cluster) -> None:
    assert health(cluster) == dict.fromkeys(cluster.nodes.keys() - {"spark/driver-1"}, 0)


class Bench:
    """One program with its topics and its recorded events."""

    def __init__(self, cluster: Cluster, output: str, guarantee: str) -> None:
        self.cluster = cluster
        self.name = f"t{secrets.token_hex(3)}"
        self.sent = 0
        self.events: list[EventDraft] = []
        topology = cluster.topology
        store = hdfs.uri(topology, "hdfs")
        self.values = {
            "run": self.name,
            "input": f"{self.name}-input",
            "checkpoint": f"{store}/checkpoints/{self.name}",
            "sink.guarantee": guarantee,
            "sink.transaction-timeout-ms": "900000",
            "source.bootstrap": kafka.addresses(topology, "kafka", "input"),
            "sink.bootstrap": kafka.addresses(topology, "kafka", "output"),
            f"output.{output}": f"{self.name}-{output}",
            "output.totals-files": f"{store}/output/{self.name}",
        }
        topics = {f"{self.name}-input": 4, f"{self.name}-{output}": 4}
        kafka_admin.create_topics(cluster, "kafka", topics)

    def send(self, count: int) -> None:
        brokers = kafka_admin.bootstrap(self.cluster, "kafka")
        producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True})
        for index in range(self.sent, self.sent + count):
            sent = record(index)
            producer.produce(
                self.values["input"], json.dumps(sent), sent["key"], partition=index % KEYS % 4
            )
        assert producer.flush(30) == 0
        self.sent += count

    def recorded_events(self, action: Action) -> list[EventDraft]:
        return [event for event in self.events if event.action == action]

    def await_event(self, action: Action, times: int = 1) -> None:
        self.wait(
            lambda: None if len(self.recorded_events(action)) >= times else "not yet", str(action)
        )

    def await_running(self) -> None:
        self.wait(lambda: ENGINE.job_pending(self.cluster, "spark", ""), "query running")

    def await_committed(self) -> None:
        since_ms = self.cluster.clock.epoch_ms()
        self.wait(
            lambda: ENGINE.drain_pending(self.cluster, "spark", "", since_ms, writes_files=True),
            "output committed",
        )
        read = ENGINE.committed(self.cluster, "spark", self.values["input"])
        assert sum(read.values()) == self.sent

    def await_recorded(self, rows: int) -> None:
        """Wait until the follower, which polls, recorded the batches of the last rows. It may never
        record the last batch that a driver committed before it was killed."""

        def pending() -> str | None:
            since_ns = self.recorded_events(Action.JOB_RESTORED)[-1].at_ns
            batches = [
                n for n in self.recorded_events(Action.CHECKPOINT_COMPLETED) if n.at_ns > since_ns
            ]
            recorded = sum(batch.value["input_rows"] for batch in batches)
            return None if recorded >= rows else f"{recorded} rows"

        self.wait(pending, "batches recorded")

    def wait(self, pending: Callable[[], str | None], what: str) -> None:
        wait_until(pending, what=what, limit_s=150, clock=self.cluster.clock, every_s=0.2)

    def rows(self, output: str) -> list[Any]:
        topic = self.values[f"output.{output}"]
        ends = kafka_admin.end_offsets(self.cluster, "kafka", topic)
        return read_committed(kafka_admin.bootstrap(self.cluster, "kafka"), topic, ends)


@contextmanager
def bench(
    cluster: Cluster, program: str, output: str, guarantee: str = "exactly-once"
) -> Iterator[Bench]:
    """Submit a shipped program, follow it, and cancel it at the end."""
    new_bench, stop = Bench(cluster, output, guarantee), threading.Event()
    text = render((JOBS / program).read_text(encoding="utf-8"), new_bench.values)
    spec = JobSpec(name=new_bench.name, pyspark=text, parallelism=4)
    job = ENGINE.submit(cluster, "spark", spec)
    cluster.run.job = CurrentJob(service="spark", id=job, spec=spec, values=new_bench.values)
    follower = threading.Thread(
        target=lambda: ENGINE.follow(
            cluster, "spark", job, new_bench.events.append, lambda *sample: None, stop
        )
    )
    follower.start()
    try:
        new_bench.await_running()
        yield new_bench
    finally:
        stop.set()
        follower.join(timeout=20)
        ENGINE.cancel(cluster, "spark", job)


@pytest.mark.nightly
def test_totals_survive_the_loss_of_the_driver_and_of_an_executor(
    cluster: Cluster, tmp_path: Path
) -> None:
    with bench(cluster, "running-totals.py", "totals") as job:
        job.send(RECORDS)
        job.await_event(Action.CHECKPOINT_COMPLETED)
        driver = cluster.node("spark/driver-1")
        cluster.runtime.kill(driver.container)
        job.await_event(Action.JOB_FAILING)
        cluster.start_again(driver)
        job.await_event(Action.JOB_RESTORED)
        job.await_running()
        injector = FaultInjector(
            cluster, IntentLog(tmp_path / "intents.jsonl"), limit_s=at_pace(30)
        )
        intent, injected = injector.inject_fault(KillExecutor())
        assert injected.done, injected.reason
        job.await_event(Action.EXECUTOR_LOST)
        assert injector.undo(intent).done
        job.send(RECORDS)
        job.await_running()
        job.await_committed()
        assert by_identity(job.rows("totals")) == expected_totals(2 * RECORDS)
        job.await_recorded(RECORDS)
    (submitted,) = job.recorded_events(Action.JOB_SUBMITTED)
    (restarting,) = job.recorded_events(Action.JOB_RESTARTING)
    assert submitted.at_ns < restarting.at_ns
    assert job.recorded_events(Action.EXECUTOR_LOST)[-1].value["node"] == "spark/worker-1"
    attempts = [event.value for event in job.recorded_events(Action.TASK_ATTEMPT)]
    assert {attempt["node"] for attempt in attempts} == {"spark/worker-1", "spark/worker-2"}
    completed = [event.value for event in job.recorded_events(Action.CHECKPOINT_COMPLETED)]
    assert max(value["state_rows"] for value in completed) == KEYS
    listed = job.recorded_events(Action.CHECKPOINT_FILES)[-1].value
    assert any(name.startswith("0/") for name in listed["shared"])


@pytest.mark.nightly
def test_the_output_files_are_those_in_the_log_of_the_sink(
    cluster: Cluster, tmp_path: Path
) -> None:
    with bench(cluster, "totals-to-files.py", "unused") as job:
        job.send(RECORDS)
        job.await_committed()
        folder = hdfs.fetch(cluster, "hdfs", f"/output/{job.name}", tmp_path)
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("part-*.json")]
    left_out = uncommitted_files(folder, [*names, *_log_of(folder)])
    lines = [
        json.loads(line)
        for name in names
        if name not in left_out
        for line in (folder / name).read_text(encoding="utf-8").splitlines()
    ]
    assert by_identity(lines) == expected_totals(RECORDS)


def _log_of(folder: Path) -> list[str]:
    return [p.relative_to(folder).as_posix() for p in (folder / "_spark_metadata").iterdir()]


@pytest.mark.nightly
def test_windows_close_at_the_watermark(cluster: Cluster) -> None:
    with bench(cluster, "tumbling-window.py", "windows") as job:
        job.send(RECORDS)
        job.await_committed()
        found = {
            (row["key"], row["window_start_ms"]): (row["records"], row["amount"])
            for row in job.rows("windows")
        }
    expected: dict[tuple[str, int], tuple[int, int]] = {}
    sent = [record(index) for index in range(RECORDS)]
    watermark_ms = max(each["event_time_ms"] for each in sent) - 2_000
    for each in sent:
        start_ms = each["event_time_ms"] - each["event_time_ms"] % 10_000
        if start_ms + 10_000 <= watermark_ms:
            records, amount = expected.get((each["key"], start_ms), (0, 0))
            expected[each["key"], start_ms] = (records + 1, amount + each["amount"])
    assert found == expected


@pytest.mark.nightly
def test_reconciling_on_the_cluster_has_the_results_of_the_embedded_session(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The driver runs on this host, which resolves the nodes' names with a file. Linux only: on
    other systems a client cannot reach the addresses of containers."""
    sent = [{**record(index), "n": index} for index in range(5_000)]
    arrived = [each for each in sent if each["n"] != 777]
    arrived += [sent[1234], {**sent[-1], "n": 5_000}]
    arrived = [{**each, "amount": 9} if each["n"] == 999 else each for each in arrived]
    _put_on_hdfs(cluster, {"sent": sent, "came": arrived})
    hosts = {node.spec.host: node.ip for node in cluster.nodes.values()}
    hosts |= {socket.gethostname(): socket.gethostbyname(socket.gethostname())}
    (tmp_path / "hosts").write_text("".join(f"{ip} {name}\n" for name, ip in hosts.items()))
    named = {"JAVA_TOOL_OPTIONS": f"-Djdk.net.hosts.file={tmp_path / 'hosts'}"}

    def reconciled(master: str) -> dict[str, Any]:
        found = tmp_path / "found.json"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "streamquake",
                "reconcile",
                "--expected",
                f"{hdfs.uri(cluster.topology, 'hdfs')}/sides/sent.jsonl",
                "--actual",
                f"{hdfs.uri(cluster.topology, 'hdfs')}/sides/came.jsonl",
                "--key",
                "n",
                "--compare",
                "amount",
                "--json",
                str(found),
                "--master",
                master,
                "--conf",
                "spark.executor.memory=512m",
            ],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
            env={**os.environ, **named},
        )
        assert done.returncode == 1, done.stdout + done.stderr
        document: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
        return document

    elsewhere = reconciled("spark://spark-master-1:7077")
    assert elsewhere == reconciled("local[2]")
    for anomaly in ("lost", "duplicated", "phantom", "changed"):
        assert elsewhere["counts"][anomaly] == 1


def _put_on_hdfs(cluster: Cluster, sides: dict[str, list[dict[str, Any]]]) -> None:
    container = cluster.node("hdfs/namenode-1").container
    lines = {name: "".join(f"{json.dumps(row)}\n" for row in rows) for name, rows in sides.items()}
    cluster.runtime.put(container, {f"/tmp/{name}.jsonl": text for name, text in lines.items()})
    files = " ".join(f"/tmp/{name}.jsonl" for name in sides)
    script = f"export JVM_HEAP_MB=128; hdfs dfs -mkdir -p /sides; hdfs dfs -put -f {files} /sides/"
    done = cluster.runtime.exec(container, ["sh", "-c", script], timeout_s=120)
    assert done.exit_code == 0, done.output


def test_a_program_that_fails_is_rejected_with_its_log_tail(cluster: Cluster) -> None:
    spec = JobSpec(name="broken", pyspark="raise ValueError('no such thing')\n", parallelism=1)
    try:
        with pytest.raises(JobRejected, match="no such thing"):
            ENGINE.submit(cluster, "spark", spec)
    finally:
        ENGINE.cancel(cluster, "spark", "")
