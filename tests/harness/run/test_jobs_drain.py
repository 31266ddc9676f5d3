"""Several jobs are drained one after the other, each by what those before it have committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import JobUnreachable
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.harness.experiment.model import JOB, Experiment
from streamquake.harness.run import jobs_drain
from streamquake.harness.run.job_preparation import RunningJob
from streamquake.harness.run.jobs_drain import JobsDrain
from tests.fakes import TOPOLOGY, fake_cluster

Ends = dict[int, int]


def promise_of(topic: str) -> Mapping[str, Any]:
    return {"outputs": {topic: {"kafka": topic}}}


EXPERIMENT = Experiment.model_validate(
    {
        "name": "chain",
        "topology": TOPOLOGY,
        "other_jobs": {"enrich": {"sql": "SELECT 1", "promise": promise_of("between")}},
        "job": {"sql": "SELECT 2", "reads": ("between",), "promise": promise_of("totals")},
        "workload": {"numbered": {"records": 100, "rate_per_s": 100}},
    }
)


class World:
    """A Kafka with the topics `input` and `between`, and an engine with two jobs."""

    def __init__(self) -> None:
        self.stable: dict[str, Ends] = {"input": {0: 10}, "between": {0: 14}}
        self.open: dict[str, int] = {"input": 0, "between": 0}
        self.records: dict[str, Ends] = {"between": {0: 11}}
        self.committed: dict[tuple[str, str], Ends] = {}
        self.read: dict[str, Ends] = {"e": {}, "j": {}}
        self.topics_of = {"e": frozenset({"input"}), "j": frozenset({"between"})}
        self.not_running: dict[str, str] = {}
        self.not_committed: dict[str, str] = {}
        self.since_ms: list[tuple[str, int]] = []
        self.searched: list[str] = []
        self.unreachable = False

    # Kafka

    def end_offsets(
        self, cluster: Any, service: str, topic: str, *, committed: bool = True
    ) -> Mapping[int, int]:
        if self.unreachable:
            raise KafkaUnreachable("no answer in time")
        more = 0 if committed else self.open[topic]
        return {number: end + more for number, end in self.stable[topic].items()}

    def group_offsets(self, cluster: Any, service: str, topic: str, group: str) -> Ends:
        return self.committed.get((group, topic), {})

    def data_ends(self, brokers: Any, topic: str, ends: Ends, begins: Ends) -> Ends:
        self.searched.append(topic)
        return self.records[topic]

    # the engine

    def job_pending(self, cluster: Cluster, service: str, job: str) -> str | None:
        return self.not_running.get(job)

    def positions(self, cluster: Cluster, service: str, job: str, topic: str) -> Ends:
        return self.read[job]

    def topics(self, cluster: Cluster, service: str, job: str) -> frozenset[str]:
        if job in self.not_running:
            raise JobUnreachable("no answer")
        return self.topics_of.get(job, frozenset())

    def drain_pending(
        self, cluster: Cluster, service: str, job: str, since_ms: int, *, writes_files: bool
    ) -> str | None:
        self.since_ms.append((job, since_ms))
        return self.not_committed.get(job)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()
    monkeypatch.setattr(kafka_admin, "end_offsets", found.end_offsets)
    monkeypatch.setattr(kafka_admin, "group_offsets", found.group_offsets)
    monkeypatch.setattr(kafka_admin, "connection", lambda cluster, service: "brokers")
    monkeypatch.setattr(jobs_drain, "data_ends", found.data_ends)
    return found


class Drain:
    """The drain of the two jobs in a world."""

    def __init__(self, world: World) -> None:
        self.cluster = fake_cluster(TOPOLOGY)
        given: dict[str, Any] = {"service": "flink", "runner": world, "cluster": self.cluster}
        self.enrich = RunningJob(name="enrich", other_id="e", writes_files=False, **given)
        self.job = RunningJob(name=JOB, other_id="j", writes_files=False, **given)
        self.drain = JobsDrain(EXPERIMENT, self.cluster, (self.job, self.enrich))


@pytest.fixture
def testbed(world: World, monkeypatch: pytest.MonkeyPatch) -> Drain:
    monkeypatch.setattr("streamquake.harness.run.job_preparation.ReportsPositions", World)
    monkeypatch.setattr("streamquake.harness.run.job_preparation.ReportsTopics", World)
    return Drain(world)


def test_a_stage_comes_before_the_one_that_reads_it(testbed: Drain) -> None:
    assert [job.name for job in testbed.drain.in_order()] == ["enrich", JOB]


def test_the_first_stage_must_have_read_the_load(world: World, testbed: Drain) -> None:
    assert testbed.drain.read_pending(testbed.enrich) == (
        "enrich: it has not read 10 records of input yet (its consumer group is `${run}`)"
    )
    world.read["e"] = {0: 10}
    assert testbed.drain.read_pending(testbed.enrich) is None


def test_a_group_of_its_own_shows_what_a_stage_has_read(world: World, testbed: Drain) -> None:
    run = testbed.cluster.run.run_id
    world.committed = {(run, "input"): {0: 10}}
    assert testbed.drain.read_pending(testbed.enrich) is not None
    world.committed = {(f"{run}.enrich", "input"): {0: 10}}
    assert testbed.drain.read_pending(testbed.enrich) is None


def test_the_next_stage_must_have_read_the_last_record_and_no_marker(
    world: World, testbed: Drain
) -> None:
    world.read["j"] = {0: 10}
    reason = testbed.drain.read_pending(testbed.job)
    assert reason is not None
    assert "has not read 1 records of between" in reason
    world.read["j"] = {0: 11}
    assert testbed.drain.read_pending(testbed.job) is None
    assert world.searched == ["between"], "the ends are noted once"


def test_an_open_transaction_between_the_stages_is_awaited(world: World, testbed: Drain) -> None:
    world.read["j"], world.open["between"] = {0: 11}, 3
    reason = testbed.drain.read_pending(testbed.job)
    assert reason == "job: an open transaction holds back 3 offsets of between"
    world.open["between"] = 0
    assert testbed.drain.read_pending(testbed.job) is None


def test_a_topic_that_a_job_reads_undeclared_is_named(world: World, testbed: Drain) -> None:
    world.topics_of, world.read["j"] = {"j": frozenset({"between", "input", "other"})}, {0: 11}
    reason = testbed.drain.read_pending(testbed.job)
    assert reason == "job reads the topic input, which its `reads` does not name"


def test_a_job_that_does_not_report_its_topics_has_not_read(world: World, testbed: Drain) -> None:
    """As after a takeover of the JobManager; its group may have committed everything."""
    world.topics_of["j"], world.read["j"] = frozenset(), {0: 11}
    reason = testbed.drain.read_pending(testbed.job)
    assert reason == "job does not report that it reads between"


def test_a_job_that_cannot_be_asked_has_not_read(world: World, testbed: Drain) -> None:
    world.not_running = {"e": "the job is FAILED"}
    assert testbed.drain.read_pending(testbed.enrich) == "enrich: no answer"


def test_a_commit_counts_from_when_everything_was_read(world: World, testbed: Drain) -> None:
    pending = testbed.drain.commit_pending(testbed.enrich)
    began_ms = testbed.cluster.clock.epoch_ms()
    testbed.cluster.clock.sleep(5)
    world.not_committed = {"e": "1 checkpoint has completed"}
    assert pending() == "enrich: 1 checkpoint has completed"
    world.not_committed = {}
    assert pending() is None
    assert world.since_ms == [("e", began_ms)] * 2


def test_topics_that_changed_after_the_drain_and_ended_jobs_are_named(
    world: World, testbed: Drain
) -> None:
    world.read["j"] = {0: 11}
    assert testbed.drain.read_pending(testbed.job) is None
    assert testbed.drain.end_pending() is None
    world.open["between"] = 1
    reason = testbed.drain.end_pending()
    assert reason == "the topic between has other ends than when its readers were drained"
    world.not_running = {"e": "the job is FAILED: no slot"}
    assert testbed.drain.end_pending() == "enrich: the job is FAILED: no slot"


def test_without_an_answer_of_kafka_nothing_is_drained(world: World, testbed: Drain) -> None:
    world.read["j"] = {0: 11}
    assert testbed.drain.read_pending(testbed.job) is None
    world.unreachable = True
    assert testbed.drain.read_pending(testbed.enrich) == "enrich: no answer in time"
    assert testbed.drain.end_pending() == "no answer in time"
