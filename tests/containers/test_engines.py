"""The engines on real containers: all tests of a version share one cluster with every kind of node.

Each test has its own topics, consumer group and job, so the residue of one does not affect another.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer

import streamquake.topologies
from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.engines.engine import JobRejected, PortAllocator, engine
from streamquake.cluster.engines.flink.engine import FlinkEngine
from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka import engine as kafka
from streamquake.cluster.images.build import ensure
from streamquake.cluster.images.clients import Clients
from streamquake.cluster.images.contexts import compiler
from streamquake.cluster.images.launcher import compile_jar
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.job import JobSpec
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.images import DockerImages
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.verdict.evidence.late_records import late_dropped
from streamquake.reports.record.event import Action, EventDraft
from streamquake.reports.record.metrics import Metrics
from streamquake.topologies.model import Topology
from streamquake.topologies.templates import render
from tests.pace import at_pace, wait_until
from tests.reviving import restart_ended_nodes

pytestmark = pytest.mark.container

FOLDER = Path(streamquake.topologies.__file__).parent
SQL_JOB = """
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

public class SqlJob {
  public static void main(String[] statements) {
    TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
    for (String statement : statements) {
      tables.executeSql(statement);
    }
  }
}
"""
FUNCTION = """
public class Twice extends org.apache.flink.table.functions.ScalarFunction {
  public Long eval(Long n) {
    return 2 * n;
  }
}
"""
KEYS = 16
RECORDS = 2_000
Row = Mapping[str, Any]


@pytest.fixture(
    scope="module",
    params=[
        "flink-kafka-hdfs",
        pytest.param("flink-1-20-kafka-hdfs", marks=pytest.mark.nightly),
    ],
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    document = yaml.safe_load(
        (FOLDER / "clusters" / f"{request.param}.yaml").read_text(encoding="utf-8")
    )
    topology = Topology.model_validate(document)
    version = topology.services["flink"].version
    kinds = [recipe("toolbox"), recipe("kafka"), recipe("hdfs"), recipe("flink", version)]
    ensure(kinds, DockerImages(), print)
    new_cluster = Cluster(
        run_id=f"engines-{secrets.token_hex(3)}",
        topology=topology,
        runtime=DockerRuntime(),
        clock=SystemClock(),
    )
    owner = {labels.OWNER: labels.owner_of_this_process()}
    try:
        start_cluster(new_cluster, tags=owner, limit_s=at_pace(240), show_message=print)
        yield new_cluster
    finally:
        assert remove_cluster(new_cluster.runtime, new_cluster.run_id) == []


def health(cluster: Cluster) -> dict[str, int]:
    """Node -> the exit code of its health check, for each that has one."""
    exit_codes = {}
    for node in cluster.nodes.values():
        own = engine(cluster.topology.services[node.spec.service].engine)
        plan = own.plan(cluster.topology, node.spec, PortAllocator(host=lambda spec, port: port))
        if plan.health:
            done = cluster.runtime.exec(node.container, plan.health)
            exit_codes[node.name] = done.exit_code
    return exit_codes


def test_every_node_passes_its_health_check(cluster: Cluster) -> None:
    assert health(cluster) == dict.fromkeys(cluster.nodes, 0)


@dataclass
class Bench:
    """One job with its topics and its recorded events."""

    cluster: Cluster
    name: str
    values: dict[str, str]
    job: str = ""
    events: list[EventDraft] = field(default_factory=list)
    samples: list[tuple[str, str, float]] = field(default_factory=list)
    sent: int = 0

    @property
    def input(self) -> str:
        return self.values["input"]

    def send(self, count: int) -> None:
        """Send records `sent` … `sent + count`, in order per key."""
        self.send_records(range(self.sent, self.sent + count))

    def send_records(self, indexes: Sequence[int]) -> None:
        """Send these records, one key per partition group."""
        producer = Producer(
            {
                "bootstrap.servers": kafka_admin.bootstrap(self.cluster, "kafka"),
                "enable.idempotence": True,
            }
        )
        for index in indexes:
            key = f"k-{index % KEYS:05d}"
            value = json.dumps(record(index))
            producer.produce(self.input, value, key, partition=index % KEYS % 4)
            producer.poll(0)
        assert producer.flush(30) == 0
        self.sent += len(indexes)

    def recorded_events(self, action: Action) -> list[EventDraft]:
        return [event for event in self.events if event.action == action]

    def await_event(self, action: Action) -> None:
        """Wait for an event. The follower polls the engine, so it records an event some time after
        it happens."""
        self.wait(lambda: None if self.recorded_events(action) else "not recorded yet", str(action))

    def await_read(self) -> None:
        engine = FlinkEngine()

        def pending() -> str | None:
            read = engine.positions(self.cluster, "flink", self.job, self.input)
            return None if sum(read.values()) == self.sent else f"read so far: {read}"

        self.wait(pending, "input read")

    def await_committed(self) -> None:
        since_ms = self.cluster.clock.epoch_ms()
        self.wait(
            lambda: FlinkEngine().drain_pending(
                self.cluster, "flink", self.job, since_ms, writes_files=True
            ),
            "output committed",
        )

    def wait(self, pending: Callable[[], str | None], what: str) -> None:
        wait_until(pending, what=what, limit_s=120, clock=self.cluster.clock, every_s=0.3)

    def rows(self, output: str) -> list[Row]:
        """Every committed record of a topic, by partition and offset."""
        topic = self.values[f"output.{output}"]
        ends = kafka_admin.end_offsets(self.cluster, "kafka", topic)
        return read_committed(kafka_admin.bootstrap(self.cluster, "kafka"), topic, ends)


def record(index: int) -> dict[str, Any]:
    return {
        "key": f"k-{index % KEYS:05d}",
        "seq": index // KEYS,
        "index": index,
        "event_time_ms": 1_767_225_600_000 + 50 * index,
        "amount": index % 7,
        "payload": "x" * 20,
        "checksum": index * 31,
    }


def read_committed(bootstrap: str, topic: str, ends: Mapping[int, int]) -> list[Row]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": secrets.token_hex(4),
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    rows: list[Row] = []
    finished: set[int | None] = set()
    deadline = time.monotonic() + 60
    while len(finished) < len(ends) and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            finished.add(message.partition())
        else:
            rows.append(json.loads(message.value() or b""))
    consumer.close()
    assert len(finished) == len(ends), f"{topic} was not read to its end"
    return rows


@contextmanager
def bench(cluster: Cluster, sql: str, outputs: Sequence[str], **options: Any) -> Iterator[Bench]:
    """Submit a shipped job with its own topics, follow it, and cancel it at the end."""
    new_bench = prepare(cluster, outputs)
    text = render((FOLDER / "jobs" / sql).read_text(encoding="utf-8"), new_bench.values)
    engine, stop = FlinkEngine(), threading.Event()
    new_bench.job = engine.submit(
        cluster, "flink", JobSpec(name=sql, sql=text, parallelism=4, **options)
    )
    follower = threading.Thread(
        target=lambda: engine.follow(
            cluster,
            "flink",
            new_bench.job,
            new_bench.events.append,
            lambda *s: new_bench.samples.append(s),
            stop,
        )
    )
    follower.start()
    try:
        new_bench.wait(lambda: engine.job_pending(cluster, "flink", new_bench.job), "job running")
        yield new_bench
    finally:
        engine.cancel(cluster, "flink", new_bench.job)
        follower.join(timeout=60)  # it ends when it observes the end of the job
        stop.set()
        follower.join()


def prepare(cluster: Cluster, outputs: Sequence[str]) -> Bench:
    name = f"t{secrets.token_hex(3)}"
    topology = cluster.topology
    values = {
        "run": name,
        "input": f"{name}-input",
        "sink.guarantee": "exactly-once",
        "sink.transaction-timeout-ms": "900000",
        "source.bootstrap": kafka.addresses(topology, "kafka", "input"),
        "sink.bootstrap": kafka.addresses(topology, "kafka", "output"),
        "hdfs": hdfs.uri(topology, "hdfs"),
        "output.totals-files": f"{hdfs.uri(topology, 'hdfs')}/output/{name}",
        **{f"output.{output}": f"{name}-{output}" for output in outputs},
    }
    topics = {f"{name}-input": 4, **{f"{name}-{output}": 4 for output in outputs}}
    kafka_admin.create_topics(cluster, "kafka", topics)
    return Bench(cluster=cluster, name=name, values=values)


def expected_totals(count: int) -> dict[tuple[str, int], tuple[int, int]]:
    totals: dict[str, int] = {}
    found = {}
    for index in range(count):
        sent = record(index)
        key, seq = sent["key"], sent["seq"]
        totals[key] = totals.get(key, 0) + sent["amount"]
        found[key, seq] = (totals[key], seq + 1)
    return found


def by_identity(rows: Sequence[Row]) -> dict[tuple[str, int], tuple[int, int]]:
    found = {(row["key"], row["seq"]): (row["total"], row["records"]) for row in rows}
    assert len(found) == len(rows), "a record is in the output twice"
    return found


@pytest.mark.nightly
def test_totals_survive_the_loss_of_a_taskmanager_in_topic_and_files(
    cluster: Cluster, tmp_path: Path
) -> None:
    with bench(cluster, "keyed-totals.sql", ["totals"]) as job:
        job.send(RECORDS)
        job.await_event(Action.CHECKPOINT_COMPLETED)
        lost = cluster.node("flink/taskmanager-2")
        cluster.runtime.kill(lost.container)
        job.await_event(Action.JOB_RESTARTING)
        cluster.start_again(lost)
        job.wait(lambda: restart_ended_nodes(cluster, ["flink"]), "flink ready again")
        job.wait(lambda: FlinkEngine().job_pending(cluster, "flink", job.job), "job running")
        job.send(RECORDS)
        job.await_read()
        job.await_committed()
        assert by_identity(job.rows("totals")) == expected_totals(2 * RECORDS)
        folder = hdfs.fetch(cluster, "hdfs", f"/output/{job.name}", tmp_path)
        lines = [
            line
            for part in folder.rglob("part-*")
            for line in part.read_text(encoding="utf-8").splitlines()
        ]
        assert by_identity([json.loads(line) for line in lines]) == expected_totals(2 * RECORDS)
    assert_every_link_carried_traffic(cluster)
    (submitted,) = job.recorded_events(Action.JOB_SUBMITTED)
    assert len(submitted.value["regions"]) == 1
    assert submitted.value["config"]["interval"] == 2_000
    assert job.recorded_events(Action.JOB_RESTORED)
    assert job.recorded_events(Action.JOB_FAILING)
    changes = [event.value for event in job.recorded_events(Action.TASK_CHANGED)]
    assert {c["node"] for c in changes} >= {f"flink/taskmanager-{n}" for n in (1, 2, 3)}
    assert {c["vertex"] for c in changes if c["attempt"] >= 1} == {c["vertex"] for c in changes}
    assert {series for series, _, _ in job.samples} >= {
        "records_in_per_s",
        "records_out_per_s",
        "busy_ms_per_s",
        "checkpoint_duration_ms",
    }


def assert_every_link_carried_traffic(cluster: Cluster) -> None:
    passed = {
        link: cluster.links.bytes_passed(cluster.links.of(link)) for link in cluster.topology.links
    }
    assert min(passed.values()) > 10_000, passed


@pytest.mark.nightly
def test_a_forward_job_copies_every_column_and_has_one_region_per_subtask(cluster: Cluster) -> None:
    with bench(cluster, "copy.sql", ["copies"]) as job:
        job.send(RECORDS)
        job.await_read()
        job.await_committed()
        rows = sorted(job.rows("copies"), key=lambda row: int(row["index"]))
        assert rows == [record(index) for index in range(RECORDS)]
    (submitted,) = job.recorded_events(Action.JOB_SUBMITTED)
    assert [len(region) for region in submitted.value["regions"]] == [1, 1, 1, 1]
    (ended,) = job.recorded_events(Action.JOB_ENDED)
    assert ended.value["state"] == "CANCELED"


@pytest.mark.nightly
def test_windows_close_at_the_watermark_and_drop_late_records(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Each key gets one more record for a closed window. None of them changes or reopens the
    window, and all are counted as late. (Of several late records of one key Flink may count only
    one, since its local aggregation merges them before the window.)"""
    with bench(cluster, "tumbling-window.sql", ["windows"]) as job:
        job.send(RECORDS)
        job.await_read()
        job.await_committed()
        assert windows_of(job) == expected_windows() != {}
        job.send_records(range(KEYS))
        job.await_read()
        job.await_committed()
        job.wait(lambda: _counted_late(job, KEYS, tmp_path / "metrics"), "late records counted")
        assert windows_of(job) == expected_windows()


def _counted_late(job: Bench, count: int, file: Path) -> str | None:
    metrics = Metrics(file)
    for change, sample in enumerate(list(job.samples)):
        metrics.add(change, *sample)
    metrics.flush()
    counted = late_dropped(file)
    return None if counted == count else f"counted so far: {counted}"


def windows_of(job: Bench) -> dict[tuple[str, int], tuple[int, int]]:
    rows = job.rows("windows")
    found = {(row["key"], row["window_start_ms"]): (row["records"], row["amount"]) for row in rows}
    assert len(found) == len(rows), "a window is in the output twice"
    return found


def expected_windows() -> dict[tuple[str, int], tuple[int, int]]:
    last_ms = min(
        max(record(i)["event_time_ms"] for i in range(RECORDS) if i % KEYS % 4 == partition)
        for partition in range(4)
    )
    windows: dict[tuple[str, int], tuple[int, int]] = {}
    for index in range(RECORDS):
        sent = record(index)
        start = sent["event_time_ms"] - sent["event_time_ms"] % 10_000
        if start + 10_000 <= last_ms - 2_000:
            records, amount = windows.get((sent["key"], start), (0, 0))
            windows[sent["key"], start] = (records + 1, amount + sent["amount"])
    return windows


@pytest.mark.nightly
def test_checkpoints_can_be_switched_off_for_one_job(cluster: Cluster) -> None:
    off = {"execution.checkpointing.interval": "disabled"}
    with bench(cluster, "copy.sql", ["copies"], config=off) as job:
        job.await_event(Action.JOB_SUBMITTED)
    (submitted,) = job.recorded_events(Action.JOB_SUBMITTED)
    assert submitted.value["config"] == {}


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELEC 1", "SELEC"),
        (
            "CREATE TEMPORARY TABLE a (b INT) WITH ('connector' = 'nosuch'); "
            "INSERT INTO a VALUES (1)",
            "nosuch",
        ),
        ("CREATE TEMPORARY TABLE a (b INT) WITH ('connector' = 'blackhole')", "started 0 jobs"),
    ],
)
def test_a_rejected_job_has_the_engines_own_message(cluster: Cluster, sql: str, words: str) -> None:
    with pytest.raises(JobRejected) as rejected:
        FlinkEngine().submit(cluster, "flink", JobSpec(name="wrong", sql=sql, parallelism=1))
    assert words in str(rejected.value)
    assert "\tat " not in str(rejected.value)
    assert len(str(rejected.value)) < 800


def end_of(cluster: Cluster, job: str) -> EventDraft:
    """Follow a job until it has ended; the event of its end."""
    events: list[EventDraft] = []
    FlinkEngine().follow(
        cluster, "flink", job, events.append, lambda *sample: None, threading.Event()
    )
    (ended,) = [event for event in events if event.action == Action.JOB_ENDED]
    return ended


def test_a_job_that_fails_permanently_ends_with_its_cause(cluster: Cluster) -> None:
    sql = """
      CREATE TEMPORARY TABLE numbers (n INT) WITH ('connector' = 'datagen');
      CREATE TEMPORARY TABLE nowhere (n INT) WITH ('connector' = 'blackhole');
      INSERT INTO nowhere SELECT 1 / (n - n) FROM numbers;
    """
    never = {"restart-strategy.type": "disable"}
    spec = JobSpec(name="fails", sql=sql, parallelism=1, config=never)
    job = FlinkEngine().submit(cluster, "flink", spec)
    ended = end_of(cluster, job)
    assert ended.value["state"] == "FAILED"
    assert "ArithmeticException" in ended.value["cause"]
    reason = FlinkEngine().job_pending(cluster, "flink", job)
    assert reason is not None
    assert "ArithmeticException" in reason


def test_a_missing_hdfs_folder_is_an_error_with_its_name(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(hdfs.HdfsShellError, match="/no/such/folder"):
        hdfs.fetch(cluster, "hdfs", "/no/such/folder", tmp_path)


def compiled(cluster: Cluster, folder: Path, name: str, source: str) -> Path:
    """The jar of a class that uses Flink's tables. The quote in its name must not end a text in
    SQL."""
    jobmanager = cluster.of_role("flink/jobmanager")[0].container
    library = "echo /opt/flink/lib/flink-table-api-java-uber-*.jar"
    api = cluster.runtime.exec(jobmanager, ["sh", "-c", library]).output.strip()
    cluster.runtime.copy_out(jobmanager, api, folder)
    sources = folder / "sources"
    sources.mkdir()
    (sources / f"{name}.java").write_text(source, encoding="utf-8")
    jar = folder / "it's a.jar"
    compile_jar(compiler(Clients(print)), sources, [folder / Path(api).name], jar)
    return jar


@pytest.mark.nightly
def test_sql_uses_a_function_of_a_jar(cluster: Cluster, tmp_path: Path) -> None:
    jar = compiled(cluster, tmp_path, "Twice", FUNCTION)
    sql = """
      CREATE TEMPORARY FUNCTION twice AS 'Twice';
      CREATE TEMPORARY TABLE numbers (n BIGINT)
        WITH ('connector' = 'datagen', 'number-of-rows' = '100');
      CREATE TEMPORARY TABLE nowhere (n INT) WITH ('connector' = 'blackhole');
      INSERT INTO nowhere SELECT 1 / CAST(twice(n) = n + n AS INT) FROM numbers;
    """
    never = {"restart-strategy.type": "disable"}
    spec = JobSpec(name="twice", sql=sql, jars=(str(jar),), parallelism=1, config=never)
    job = FlinkEngine().submit(cluster, "flink", spec)
    ended = end_of(cluster, job)
    assert ended.value["state"] == "FINISHED", "another result would divide by zero"

    without = JobSpec(name="twice", sql=sql, parallelism=1, config=never)
    with pytest.raises(JobRejected, match="Twice"):
        FlinkEngine().submit(cluster, "flink", without)


def test_a_jar_runs_as_a_job(cluster: Cluster, tmp_path: Path) -> None:
    jar = compiled(cluster, tmp_path, "SqlJob", SQL_JOB)
    engine = FlinkEngine()
    statements = (
        "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')",
        "CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')",
        "INSERT INTO nowhere SELECT n FROM numbers",
    )
    spec = JobSpec(name="jar", jar=str(jar), entry_class="SqlJob", args=statements, parallelism=2)
    job = engine.submit(cluster, "flink", spec)
    try:
        wait_until(
            lambda: engine.job_pending(cluster, "flink", job),
            what="jar running",
            limit_s=90,
            clock=cluster.clock,
        )
    finally:
        engine.cancel(cluster, "flink", job)
