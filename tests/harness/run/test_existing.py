"""An existing Kafka and an existing job: Streamquake neither deploys nor changes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster, start_cluster
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka import engine as kafka
from streamquake.cluster.engines.kafka.admin import TopicMismatch
from streamquake.cluster.engines.kafka.engine import KafkaEngine
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.harness.cli.machine_check import hindrances
from streamquake.harness.experiment.loader import experiment_of, topology_for_use
from streamquake.harness.experiment.model import ExistingJob, Experiment
from streamquake.harness.run import job_preparation
from streamquake.harness.run.load import RunLoad
from streamquake.reports.record.event import Action
from streamquake.topologies.loader import load_topology
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import parse_document
from tests.harness.run.test_load import PROMISE, Topic, WatchTestbed, topic

__all__ = ["topic"]

GOOD = """\
name: existing-job
topology: existing
job:
  existing: {group: copier, quiet_s: 5}
  promise:
    outputs: {copies: {kafka: copies, identity: [key, seq], compare: [amount]}}
    expected: SELECT key, seq, amount FROM sent
workload: {numbered: {records: 1000, rate_per_s: 100, partitions: 2, topic: orders}}
faults:
  - {skew: {hot_share: 0.5}, target: the workload, at_s: 2, for_s: 1.5}
checks: [exactly_once]
"""
EXISTING = load_topology("existing")


def load(text: str, sets: Sequence[str] = ()) -> Experiment:
    return experiment_of(parse_document(text, "e.yaml"), beside=Path(), sets=sets, seed=1)


def problems_of(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        load(text)
    return "\n".join(str(problem) for problem in caught.value.problems)


def cluster() -> Cluster:
    # No runtime: an existing Kafka needs no container, so any call of one fails the test.
    return Cluster(run_id="r", topology=EXISTING, runtime=None, clock=FakeClock())  # type: ignore[arg-type]


def test_an_existing_job_and_kafka_need_neither_program_nor_nodes() -> None:
    existing = load(GOOD, ["topology.services.kafka.endpoint=b1:9092,b2:9092"])
    assert existing.topology.nodes() == ()
    assert existing.job is not None
    assert existing.job.existing == ExistingJob(group="copier", quiet_s=5)
    assert kafka.addresses(existing.topology, "kafka", "input") == "b1:9092,b2:9092"
    assert not existing.checkpointed


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("{kill: {}, target: kafka/broker-1, at_s: 2}", "kafka at localhost:9092 is not"),
        ("{slow_link: {latency_ms: 5}, target: link sink, at_s: 2}", "disturb the data ("),
        ("{restart_job: {}, target: the job, at_s: 2}", 'skew, surge; target "the workload"'),
        ("{kill: {}, target: one of worker, at_s: 2}", "kafka at localhost:9092 is not"),
        ("{poison: {}, target: the workload, at_s: 2}", "could fail on it permanently"),
    ],
)
def test_a_fault_on_an_existing_kafka_is_rejected_with_the_next_step(
    fault: str, words: str
) -> None:
    assert words in problems_of(
        GOOD.replace("{skew: {hot_share: 0.5}, target: the workload, at_s: 2, for_s: 1.5}", fault)
    )


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("existing: {group: copier, quiet_s: 5}", "{sql: copy.sql, existing: {}}", "expected"),
        ("topology: existing", "topology: kafka-only", "give kafka an `endpoint`"),
        (
            "topology: existing",
            "topology:\n  name: t\n  services:\n    kafka: {engine: kafka, endpoint: nowhere}",
            "comma-separated HOST:PORT, got",
        ),
        (
            "topology: existing",
            "topology:\n  name: t\n  services:\n"
            '    kafka: {engine: kafka, endpoint: "a:1", nodes: {broker: 1}}',
            "remove `nodes`",
        ),
        (
            "topology: existing",
            "topology:\n  name: t\n  services:\n    kafka: {engine: kafka}",
            "or give the `endpoint` of one that runs",
        ),
        (
            "topology: existing",
            "topology:\n  name: t\n  services:\n"
            '    kafka: {engine: kafka, endpoint: "a:1"}\n'
            '    hdfs: {engine: hdfs, endpoint: "h:1"}',
            "an existing hdfs cannot be used, only an existing flink, kafka",
        ),
    ],
)
def test_contradicting_settings_are_rejected(before: str, after: str, words: str) -> None:
    assert words in problems_of(GOOD.replace(before, after))


def test_an_existing_kafka_is_not_started_and_its_readiness_is_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(["no answer", None])
    monkeypatch.setattr(kafka_admin, "external_pending", lambda *_: next(answers))
    existing = cluster()
    messages: list[str] = []
    start_cluster(existing, tags={}, limit_s=10, show_message=messages.append)
    assert existing.nodes == {}
    assert messages[0].startswith("kafka ready")
    assert kafka_admin.bootstrap(existing, "kafka") == "localhost:9092"


def test_an_existing_kafka_cannot_be_deployed_and_needs_no_container_engine() -> None:
    with pytest.raises(BadInput, match="it has only existing services"):
        topology_for_use("existing")
    assert "container engine" not in [hindrance.what for hindrance in hindrances(None)]


def test_topics_of_an_existing_kafka_are_never_deleted() -> None:
    with pytest.raises(PermissionError, match="Streamquake deletes no topics at"):
        KafkaEngine().clean(cluster(), "kafka", {})


def use_topics(monkeypatch: pytest.MonkeyPatch, ends: Mapping[str, dict[int, int]]) -> None:
    """Replace the topics of the Kafka: topic -> the end offsets of its partitions."""
    monkeypatch.setattr(kafka_admin, "topics_at", lambda brokers: tuple(ends))
    monkeypatch.setattr(kafka_admin, "ends_at", lambda brokers, topic, committed: ends[topic])


def test_existing_topics_are_not_created_and_the_run_begins_at_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = {"orders": {0: 7, 1: 9}, "copies": {0: 3}}
    use_topics(monkeypatch, ends)
    existing = cluster()
    assert job_preparation.prepare_job(load(GOOD), existing, "r") is None, "no job is submitted"
    assert existing.run.begins == ends


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ({"orders": {0: 0, 1: 0}}, "there is no topic copies at localhost:9092"),
        ({"orders": {0: 0}, "copies": {0: 0}}, "give it `partitions: 1`"),
    ],
)
def test_unsuitable_topics_are_rejected_before_the_run(
    ends: Mapping[str, dict[int, int]], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_topics(monkeypatch, ends)
    with pytest.raises(TopicMismatch, match=words):
        job_preparation.prepare_job(load(GOOD), cluster(), "r")


def open_watch(folder: Path, group: str | None) -> tuple[WatchTestbed, RunLoad]:
    existing = WatchTestbed(
        folder,
        job={"existing": {"group": group}, "promise": PROMISE},
        begins={"totals-topic": {0: 10, 1: 20}},
    )
    running: Any = None
    return existing, RunLoad(running=running, seconds=1, watch=existing.watch)


def test_an_older_open_transaction_does_not_hide_growth_of_other_partitions(
    tmp_path: Path, topic: Topic
) -> None:
    """In partition 0, four records from before the run and one of the run are behind the open
    transaction; three records of the run are in partition 1."""
    existing, _ = open_watch(tmp_path, None)
    topic.stable, topic.open = {0: 6, 1: 23}, {0: 5, 1: 0}
    existing.poll_after(1)
    existing.loop.tick()
    (output,) = existing.loop.history().of(Action.OUTPUT_SEEN)
    assert (output.value["grown"], output.value["end"]) == (3, 33)
    assert existing.samples("held_back") == {"totals/0": [1], "totals/1": [0]}


def test_the_drain_ends_when_the_group_has_read_all_and_output_is_quiet(
    tmp_path: Path, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    lags = iter([40, 0, 0, 0])
    existing, load = open_watch(tmp_path, "copier")
    monkeypatch.setattr(existing.watch, "lag", lambda job: next(lags))
    topic.stable = {0: 10, 1: 20}
    existing.poll_after(60)
    pending = load.quiet_pending(ExistingJob(group="copier", quiet_s=5))
    assert pending() == "the consumer group copier has not read 40 records yet"
    existing.poll_after(4)
    topic.stable = {0: 11, 1: 20}
    existing.poll_after(4)
    assert pending() == "no output for 0 s, and 5 s are needed"
    topic.unreachable = "stable"
    existing.clock.sleep(60)
    assert pending() is not None, "an unreachable Kafka is not a quiet one"
    topic.unreachable = ""
    existing.poll_after(5)
    assert pending() is None


def test_records_from_before_the_run_do_not_count_as_output(tmp_path: Path, topic: Topic) -> None:
    existing, _ = open_watch(tmp_path, None)
    topic.stable = {0: 10, 1: 20}
    existing.poll_after(1)
    existing.loop.tick()
    assert existing.loop.history().of(Action.OUTPUT_SEEN) == ()
    topic.stable = {0: 12, 1: 20}
    existing.poll_after(1)
    existing.loop.tick()
    (output,) = existing.loop.history().of(Action.OUTPUT_SEEN)
    assert (output.value["grown"], output.value["end"]) == (2, 32)
