"""The clean-up after a run: each engine removes the residue and verifies the removal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import CleansUpRuns, KnowsDuties, RunResidue, engine
from streamquake.cluster.engines.flink import job as flink_job
from streamquake.cluster.engines.hdfs.engine import HdfsShellError
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.brokers import ABORTED, OPEN
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult
from streamquake.cluster.runtime.waiting import NotReadyInTime
from tests.fakes import WIDE, fake_cluster

LEFT = RunResidue(run="run-1", folders=("/output/totals",))


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


def forget(cluster: Cluster, name: str, left: RunResidue = LEFT) -> None:
    runner = engine(name)
    assert isinstance(runner, CleansUpRuns)
    runner.forget(cluster, name, left)


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
    forget(cluster, "kafka")
    found = cluster.clients["kafka"].transactions()
    assert found
    assert {(t.state, t.epoch) for t in found} == {(ABORTED, 1)}
    assert kafka_admin.topics(cluster, "kafka") == ()


def test_topics_that_remain_are_named(cluster: Cluster, topics: Topics) -> None:
    topics._lag = 10**6
    with pytest.raises(NotReadyInTime, match="topics not deleted: input, totals"):
        forget(cluster, "kafka")


def test_a_transaction_that_does_not_end_is_named(
    cluster: Cluster, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.clients["kafka"], "expire", lambda transaction: None)
    with pytest.raises(NotReadyInTime, match="test-totals-1-1 of epoch 0"):
        forget(cluster, "kafka")
    assert topics.names == ["input", "totals"]


class Jobs:
    """A JobManager with one job that ends some polls after its cancellation."""

    def __init__(self, polls: int) -> None:
        self.polls = polls
        self.cancelled: list[str] = []

    def get(self, path: str, **parameters: str) -> Any:
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
    monkeypatch.setattr(flink_job, "jobmanager", lambda cluster, service: rest)
    forget(cluster, "flink")
    assert rest.cancelled == ["/jobs/live"]
    assert rest.polls < 0


def test_a_job_that_does_not_end_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flink_job, "jobmanager", lambda cluster, service: Jobs(10**6))
    with pytest.raises(NotReadyInTime, match="not ended: live"):
        forget(cluster, "flink")


def hdfs_shell(cluster: Cluster, exit_code: int = 0) -> list[list[str]]:
    """Answers the file-system shell; returns its calls."""
    assert isinstance(cluster.runtime, FakeRuntime)
    calls: list[list[str]] = []

    def answer(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        if "hdfs dfs" not in " ".join(argv):
            return None
        calls.append(list(argv))
        return ExecResult(exit_code=exit_code, output="Name node is in safe mode.")

    cluster.runtime.on_exec.insert(0, answer)
    return calls


def test_hdfs_deletes_the_folders_of_the_run(cluster: Cluster) -> None:
    calls = hdfs_shell(cluster)
    forget(cluster, "hdfs")
    ((*_, folder),) = calls
    assert folder == "/output/totals"
    assert "-rm -r -f -skipTrash" in calls[0][2]


def test_hdfs_deletes_nothing_for_a_run_that_wrote_nothing(cluster: Cluster) -> None:
    calls = hdfs_shell(cluster)
    forget(cluster, "hdfs", RunResidue(run="run-1", folders=()))
    assert calls == []


def test_a_failed_deletion_has_the_message_of_hdfs(cluster: Cluster) -> None:
    hdfs_shell(cluster, exit_code=1)
    with pytest.raises(HdfsShellError, match="safe mode"):
        forget(cluster, "hdfs")


@pytest.mark.parametrize("name", ["flink", "hdfs", "kafka", "zookeeper"])
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
