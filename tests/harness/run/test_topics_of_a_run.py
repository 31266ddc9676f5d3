"""The topics of a run: output topics use LogAppendTime, input topics CreateTime."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.admin import TopicMismatch
from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.harness.experiment.model import Experiment, Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.run import job_preparation
from streamquake.harness.workloads.numbered import Numbered
from tests.fakes import TOPOLOGY, fake_cluster

PROMISE = JobPromise(
    outputs={"totals": Output(kafka="totals"), "files": Output(hdfs="/x")}, partitions=2
)
NO_JOBS: Mapping[str, Job] = {}


class Admin:
    """A fake admin client that creates topics at once."""

    def __init__(self) -> None:
        self.created: dict[str, tuple[int, Mapping[str, str]]] = {}
        self.existing = {"__consumer_offsets": None, "other": None}

    def list_topics(self, **limits: float) -> Any:
        return SimpleNamespace(topics=self.existing)

    def create_topics(self, topics: list[NewTopic], **limits: float) -> dict[str, Any]:
        assert topics, "the client refuses an empty list"
        for topic in topics:
            self.created[topic.topic] = (topic.num_partitions, dict(topic.config or {}))
        return {}


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Admin:
    fake = Admin()
    monkeypatch.setattr(kafka_admin, "_client", lambda cluster, service: fake)
    monkeypatch.setattr(kafka_admin, "bootstrap", lambda cluster, service: "brokers")
    monkeypatch.setattr(kafka_admin, "_client_of", lambda brokers: fake)
    return fake


def create_topics_for(job: Job | None, others: Mapping[str, Job] = NO_JOBS) -> None:
    workload = Numbered(records=10, rate_per_s=10, partitions=3)
    planned = Experiment(
        name="topics", topology=TOPOLOGY, job=job, other_jobs=others, workload=workload
    )
    job_preparation._create_topics(planned, fake_cluster(TOPOLOGY))


def test_outputs_are_stamped_on_append_and_the_input_is_not(admin: Admin) -> None:
    create_topics_for(Job(sql="SELECT 1", promise=PROMISE))

    assert admin.created == {
        "input": (3, {}),
        "totals": (2, {"message.timestamp.type": "LogAppendTime"}),
    }


def test_a_topic_that_is_there_before_the_run_is_rejected(admin: Admin) -> None:
    admin.existing["totals"] = None

    with pytest.raises(TopicMismatch, match="the topic totals is there before the run"):
        create_topics_for(Job(sql="SELECT 1", promise=PROMISE))

    assert admin.created == {}


def test_only_the_topics_of_kafka_itself_are_internal(admin: Admin) -> None:
    admin.existing |= {"__transaction_state": None, "__totals": None}
    assert kafka_admin.topics_at(KafkaConnection("brokers")) == ("__totals", "other")


def test_the_topics_of_other_jobs_are_created_as_those_of_the_job(admin: Admin) -> None:
    other = Job(sql="SELECT 2", promise=JobPromise(outputs={"between": Output(kafka="between")}))
    create_topics_for(Job(sql="SELECT 1", promise=PROMISE), {"enrich": other})

    stamped = {"message.timestamp.type": "LogAppendTime"}
    assert admin.created == {"input": (3, {}), "totals": (2, stamped), "between": (4, stamped)}


def test_without_a_job_the_input_topic_keeps_create_time(admin: Admin) -> None:
    create_topics_for(None)

    assert admin.created == {"input": (3, {})}
