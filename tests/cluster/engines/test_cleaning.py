"""The clean-up after a run: each engine removes the residue and verifies the removal."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import CleansUpRuns, Contents, KnowsDuties, engine
from streamquake.cluster.engines.flink import engine as flink_engine
from streamquake.cluster.engines.flink import job as flink_job
from streamquake.cluster.engines.hdfs.namenode import DeletionRejected, LiveNameNode
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka import contents as kafka_contents
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import ABORTED, OPEN
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.cluster.runtime.waiting import NotReadyInTime
from streamquake.topologies.loader import load_topology
from tests.fakes import WIDE, fake_cluster


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


def clean(cluster: Cluster, name: str, kept: Contents | None = None) -> None:
    cleaner(name).clean(cluster, name, kept or {})


def cleaner(name: str) -> CleansUpRuns:
    runner = engine(name)
    assert isinstance(runner, CleansUpRuns)
    return runner


class Topics:
    """Topics of a service; the next `lag` listings still contain the deleted ones."""

    def __init__(self, cluster: Cluster, lag: int) -> None:
        self.names = ["input", "totals"]
        self._before = ["input", "totals"]
        self._lag = lag
        self._cluster = cluster

    def topics(self, cluster: Cluster, service: str) -> tuple[str, ...]:
        if not self.names and self._lag:
            self._lag -= 1
            return tuple(self._before)
        return tuple(self.names)

    def delete(self, cluster: Cluster, service: str, names: Sequence[str]) -> None:
        states = {t.state for t in cluster.clients["kafka"].transactions()}
        assert OPEN not in states, "topics are deleted only after their transactions have ended"
        self.names = [name for name in self.names if name not in names]


@pytest.fixture
def topics(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Topics:
    topics = Topics(cluster, lag=3)
    monkeypatch.setattr(kafka_admin, "topics", topics.topics)
    monkeypatch.setattr(kafka_admin, "delete_topics", topics.delete)
    return topics


def test_kafka_ends_transactions_before_it_deletes_the_topics(
    cluster: Cluster, topics: Topics
) -> None:
    clean(cluster, "kafka")
    found = cluster.clients["kafka"].transactions()
    assert found
    assert {(t.state, t.epoch) for t in found} == {(ABORTED, 1)}
    assert kafka_admin.topics(cluster, "kafka") == ()


def test_topics_that_remain_are_named(cluster: Cluster, topics: Topics) -> None:
    topics._lag = 10**6
    with pytest.raises(NotReadyInTime, match="topics not deleted: input, totals"):
        clean(cluster, "kafka")


def test_a_transaction_that_does_not_end_is_named(
    cluster: Cluster, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.clients["kafka"], "expire", lambda transaction: None)
    with pytest.raises(NotReadyInTime, match="test-totals-1-1 of epoch 0"):
        clean(cluster, "kafka")
    assert topics.names == ["input", "totals"]


class Jobs:
    """A JobManager with one job that ends some polls after its cancellation."""

    def __init__(self, polls: int) -> None:
        self.polls = polls
        self.cancelled: list[str] = []
        self.jars = ["kept.jar", "of-the-run.jar"]

    def delete(self, path: str) -> None:
        assert self.polls < 0, "a program is deleted only after its job has ended"
        self.jars.remove(path.removeprefix("/jars/"))

    def get(self, path: str, **parameters: str) -> Any:
        if path == "/jars":
            return {"files": [{"id": jar} for jar in self.jars]}
        assert path == "/jobs/overview"
        if self.cancelled:
            self.polls -= 1
        live = {"jid": "live", "end-time": 5 if self.polls < 0 else -1}
        return {"jobs": [{"jid": "old", "end-time": 1}, live]}

    def patch(self, path: str, **parameters: str) -> None:
        self.cancelled.append(path)

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *what: object) -> None:
        return


@pytest.mark.parametrize("polls", [0, 4])
def test_flink_cancels_running_jobs_and_waits_for_their_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, polls: int
) -> None:
    rest = Jobs(polls)
    for module in (flink_job, flink_engine):
        monkeypatch.setattr(module, "jobmanager", lambda cluster, service: rest)
    clean(cluster, "flink", {"uploaded programs": frozenset({"kept.jar"})})
    assert rest.cancelled == ["/jobs/live"]
    assert rest.polls < 0
    assert rest.jars == ["kept.jar"]


def test_a_taskmanager_that_was_started_anew_is_listed_until_it_is_given_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = Jobs(0)
    paths = [f"pekko.tcp://flink@flink-taskmanager-{n}:6122/user/rpc" for n in (1, 2, 2)]
    answers = {
        "/taskmanagers": {"taskmanagers": [{"path": path} for path in paths]},
        "/jars": {"files": [{"id": "a.jar"}]},
    }
    monkeypatch.setattr(rest, "get", lambda path: answers.get(path, {"jobs": []}))
    for module in (flink_job, flink_engine):
        monkeypatch.setattr(module, "jobmanager", lambda cluster, service: rest)
    assert cleaner("flink").contents(cluster, "flink") == {
        "jobs": frozenset(),
        "jobs in ZooKeeper": frozenset(),
        "uploaded programs": {"a.jar"},
        "registered TaskManagers": {
            "flink-taskmanager-1 (1 times)",
            "flink-taskmanager-2 (2 times)",
        },
    }


def test_a_job_that_does_not_end_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flink_job, "jobmanager", lambda cluster, service: Jobs(10**6))
    with pytest.raises(NotReadyInTime, match="not ended: live"):
        clean(cluster, "flink")


class Files:
    """The files of a NameNode; a deletion is recorded and deletes what is below."""

    def __init__(self, *paths: str) -> None:
        self.left = set(paths)
        self.deleted: list[str] = []

    def paths(self) -> frozenset[str]:
        return frozenset(self.left)

    def delete(self, path: str) -> None:
        self.deleted.append(path)
        self.left = {p for p in self.left if p != path and not p.startswith(f"{path}/")}


def test_hdfs_deletes_what_was_not_there_after_the_deployment(cluster: Cluster) -> None:
    kept = frozenset({"/flink", "/flink/ha"})
    files = Files(
        *kept, "/flink/checkpoints", "/flink/checkpoints/job", "/output", "/output/totals"
    )
    cluster.clients["hdfs"] = files
    clean(cluster, "hdfs", {"paths": kept})
    assert files.deleted == ["/flink/checkpoints", "/output"]
    assert cleaner("hdfs").contents(cluster, "hdfs") == {"paths": kept}


def test_a_rejected_deletion_has_the_reason_of_the_namenode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = {"RemoteException": {"exception": "SafeModeException", "message": "Cannot delete\nx"}}
    monkeypatch.setattr(LiveNameNode, "_answer", lambda *args: answer)
    with pytest.raises(
        DeletionRejected, match=r"/a could not be deleted: SafeModeException: Canno"
    ):
        LiveNameNode("nowhere").delete("/a")


def test_the_paths_of_a_namenode_are_files_and_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {
        "/": [{"pathSuffix": "a", "type": "DIRECTORY"}, {"pathSuffix": "b", "type": "FILE"}],
        "/a": [{"pathSuffix": "c", "type": "FILE"}],
    }
    monkeypatch.setattr(
        LiveNameNode,
        "_answer",
        lambda self, verb, path, query: {
            "FileStatuses": {"FileStatus": listed[path.removeprefix("/webhdfs/v1")]}
        },
    )
    assert LiveNameNode("nowhere").paths() == {"/a", "/a/c", "/b"}


def test_kafka_keeps_what_was_there_after_the_deployment(cluster: Cluster, topics: Topics) -> None:
    clean(cluster, "kafka", {"topics": frozenset({"input"}), "consumer groups": frozenset({"g"})})
    assert topics.names == ["input"]
    assert cluster.clients["kafka"].group_names == ["g"]


def test_the_contents_of_kafka(cluster: Cluster, topics: Topics) -> None:
    brokers = cluster.clients["kafka"]
    brokers.deleted_folders["kafka/broker-2"] = ["input-0.1f-delete", "input-1.2f-delete"]
    brokers.changed.append("broker 1: log.cleaner.threads=2")
    assert cleaner("kafka").contents(cluster, "kafka") == {
        "topics": {"input", "totals"},
        "folders of deleted topics": {
            "kafka/broker-2: input-0.1f-delete",
            "kafka/broker-2: input-1.2f-delete",
        },
        "consumer groups": {"g", "run-1"},
        "transactions under way": {f"test-totals-{n}-1 of epoch 0" for n in (1, 2, 3)},
        "changed settings": {"broker 1: log.cleaner.threads=2"},
    }


def test_kafka_waits_until_the_files_of_deleted_topics_are_gone(
    cluster: Cluster, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [["input-0.1f-delete"], ["input-0.1f-delete"], []]
    monkeypatch.setattr(
        kafka_contents,
        "_folders_of_deleted",
        lambda *args: listed.pop(0) if len(listed) > 1 else listed[0],
    )
    clean(cluster, "kafka")
    assert listed == [[]]


def test_files_that_remain_are_named(cluster: Cluster, topics: Topics) -> None:
    cluster.clients["kafka"].deleted_folders["kafka/broker-2"] = ["input-0.1f-delete"]
    with pytest.raises(NotReadyInTime, match="files not deleted: kafka/broker-2: input-0"):
        clean(cluster, "kafka")


def test_the_folders_of_deleted_partitions_are_listed_or_the_command_fails(tmp_path: Path) -> None:
    def listed(folder: Path) -> tuple[bool, list[str]]:
        argv = [*kafka_contents.LIST_DELETED, str(folder)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout.split()

    assert listed(tmp_path) == (True, [])
    for name in ("input-0.1f-delete", "input-delete-1", "input-1.2f-delete"):
        (tmp_path / name).mkdir()
    assert listed(tmp_path) == (True, ["input-0.1f-delete", "input-1.2f-delete"])
    assert listed(tmp_path / "missing") == (False, [])


def test_folders_that_cannot_be_listed_are_no_proof(cluster: Cluster, topics: Topics) -> None:
    cluster.runtime.kill(cluster.node("kafka/broker-2").container)
    with pytest.raises(ContainerError):
        cleaner("kafka").contents(cluster, "kafka")


@pytest.mark.parametrize("ended", [False, True])
def test_transactions_of_a_broker_that_did_not_answer_may_be_open(
    cluster: Cluster, topics: Topics, ended: bool
) -> None:
    brokers = cluster.clients["kafka"]
    brokers.silent = ("kafka/broker-2: timed out",)
    if ended:
        brokers.transaction_states.clear()
    for step in (cleaner("kafka").contents, lambda c, s: clean(c, s)):
        with pytest.raises(KafkaUnreachable, match="transactions: kafka/broker-2: timed out"):
            step(cluster, "kafka")
    assert topics.names == ["input", "totals"]


def test_spark_ends_its_program_and_waits_for_the_end_of_its_executors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark = fake_cluster(load_topology("spark-kafka-hdfs"))
    programs = [["app-1"], ["app-1"], []]
    workers = [{"host": "spark-worker-1", "state": each} for each in ("DEAD", "ALIVE", "ALIVE")]

    def report() -> dict[str, Any]:
        ids = programs.pop(0) if len(programs) > 1 else programs[0]
        return {"activeapps": [{"id": name} for name in ids], "workers": workers}

    spark.clients["spark/master"] = SimpleNamespace(state=report)
    assert cleaner("spark").contents(spark, "spark") == {
        "programs": {"app-1"},
        "living workers": {"spark-worker-1 (2 times)"},
    }
    programs[:] = [["app-1"], ["app-1"], []]
    driver = spark.node("spark/driver-1")
    before = spark.state(driver).started_at
    clean(spark, "spark")
    assert spark.state(driver).started_at > before
    assert programs == [[]]


@pytest.mark.parametrize("name", ["flink", "hdfs", "kafka", "spark", "zookeeper"])
def test_the_engines_of_the_shipped_topologies_clean_up_runs(name: str) -> None:
    assert isinstance(engine(name), CleansUpRuns)


def test_a_transactional_id_is_matched_with_the_id_of_the_current_run(cluster: Cluster) -> None:
    runner = engine("kafka")
    assert isinstance(runner, KnowsDuties)
    duty = "transaction coordinator of totals-3"
    assert runner.on_duty(cluster, "kafka", duty) == ("kafka/broker-3",)
    cluster.run.run_id = "another"
    with pytest.raises(LookupError, match="no transactional id"):
        runner.on_duty(cluster, "kafka", duty)
