"""Faults inside the JVM on a real small job, with both supported versions of Flink."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.engines.flink.engine import FlinkEngine
from streamquake.cluster.engines.flink.rest import jobmanager
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.job import JobSpec
from streamquake.cluster.jvm_agent import JvmAgent
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.labels import OWNER, owner_of_this_process
from streamquake.faults.fault import faults
from streamquake.faults.injection.injection import evidence_now
from streamquake.faults.injection.intents import IntentLog
from streamquake.faults.mechanisms.jvm_rules import JvmFault
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.topologies.model import Topology
from tests.injecting import FaultInjector
from tests.pace import at_pace, wait_until
from tests.reviving import restart_ended_nodes
from tests.tiers import others_nightly

pytestmark = [pytest.mark.container, pytest.mark.nightly]

NODE = "flink/taskmanager-1"
SQL = """
CREATE TEMPORARY TABLE numbers (k INT, v BIGINT, arrived AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '200', 'fields.k.min' = '0', 'fields.k.max' = '9'
);
CREATE TEMPORARY TABLE sums (k INT, v BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'sums', 'format' = 'json',
  'properties.bootstrap.servers' = 'kafka-broker-1:9094',
  'properties.transaction.timeout.ms' = '60000',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'sums'
);
INSERT INTO sums SELECT k, SUM(v) OVER (
  PARTITION BY k ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) FROM numbers;
"""
SETTINGS = {
    "execution.checkpointing.interval": "500 ms",
    "execution.checkpointing.tolerable-failed-checkpoints": 1000,
}
MESSAGE = "thrown by a test"
PARAMETERS: dict[str, dict[str, Any]] = {
    "throw_in_task": {"operator": "OverAggregate", "message": MESSAGE},
    "slow_operator": {"operator": "OverAggregate", "delay_ms": 5},
    "delay_checkpoint": {"phase": "sync", "operator": "Writer", "delay_ms": 200},
    "fail_checkpoint": {"phase": "sync", "operator": "OverAggregate", "message": MESSAGE},
    "fail_precommit": {"message": MESSAGE},
    "fail_commit": {"message": MESSAGE},
    "fail_restore": {"operator": "OverAggregate", "message": MESSAGE},
}
"""The parameters that differ from each fault's example."""
IN_MAKE_TEST = ("fail_checkpoint", "slow_operator", "throw_in_task")
"""A rule that throws within a checkpoint, one that delays, and one whose message is reported."""
JVM_FAULTS = sorted(name for name, kind in faults.items() if issubclass(kind, JvmFault))


@pytest.fixture(scope="module", params=["2.2", pytest.param("1.20", marks=pytest.mark.nightly)])
def flink(request: pytest.FixtureRequest, docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    topology = Topology.model_validate(
        {
            "name": "small-flink",
            "services": {
                "kafka": {"engine": "kafka", "nodes": {"broker": 1}},
                "flink": {
                    "engine": "flink",
                    "version": request.param,
                    "nodes": {"jobmanager": 1, "taskmanager": {"count": 1, "slots": 2}},
                },
            },
        }
    )
    ensure_images(topology, docker_runtime.images(), print)
    run_id = f"test-jvm-{os.getpid()}"
    cluster = Cluster(run_id=run_id, topology=topology, runtime=docker_runtime, clock=SystemClock())
    try:
        start_cluster(
            cluster, tags={OWNER: owner_of_this_process()}, limit_s=at_pace(180), show_message=print
        )
        yield cluster
    finally:
        assert remove_cluster(docker_runtime, run_id) == []


@pytest.fixture(scope="module")
def job(flink: Cluster) -> str:
    kafka_admin.create_topics(flink, "kafka", {"sums": 1})
    spec = JobSpec(name="sums", sql=SQL, parallelism=1, config=SETTINGS)
    return FlinkEngine().submit(flink, "flink", spec)


@pytest.fixture
def cluster(flink: Cluster, job: str) -> Cluster:
    """The cluster, while every task of its job runs."""
    _await_running(flink, job)
    return flink


def _await_running(cluster: Cluster, job: str) -> None:
    def pending() -> str | None:
        return restart_ended_nodes(cluster) or FlinkEngine().job_pending(cluster, "flink", job)

    wait_until(pending, what="every task of the job running", limit_s=240, clock=cluster.clock)


@pytest.fixture
def injector(cluster: Cluster, tmp_path: Path) -> FaultInjector:
    return FaultInjector(
        cluster, IntentLog(tmp_path / "intents.jsonl"), limit_s=at_pace(60), at=NODE
    )


def _reported(cluster: Cluster, job: str) -> str:
    """The JobManager's report of the job's failures and of its failed checkpoints."""
    with jobmanager(cluster, "flink") as rest:
        return f"{rest.get(f'/jobs/{job}/exceptions')}{rest.get(f'/jobs/{job}/checkpoints')}"


@pytest.mark.parametrize("name", others_nightly(JVM_FAULTS, IN_MAKE_TEST))
def test_a_jvm_fault_takes_effect_on_a_job_and_is_healed(
    cluster: Cluster, job: str, name: str, injector: FaultInjector
) -> None:
    parameters = {**faults[name].example, **PARAMETERS.get(name, {})}
    with injector.in_effect(faults[name](**parameters)) as (_, injected):
        assert injected.evidence[NODE]["first_hit"]
        if parameters.get("message") == MESSAGE:
            wait_until(
                lambda: None if MESSAGE in _reported(cluster, job) else "not reported",
                what="message in the JobManager's report",
                limit_s=60,
                clock=cluster.clock,
            )
    left = JvmAgent(cluster.runtime, cluster.node(NODE).container).rules()
    assert left is not None
    assert not left.texts
    assert not [key for key in left.properties if key.startswith("streamquake")]


def test_a_restarted_jvm_has_no_rules(cluster: Cluster, injector: FaultInjector) -> None:
    node = cluster.node(NODE)
    intent, injected = injector.inject_fault(faults["slow_operator"](**PARAMETERS["slow_operator"]))
    assert injected.done, injected.reason
    cluster.runtime.kill(node.container)
    assert evidence_now(intent, cluster)[NODE].healed
    cluster.start_again(node)
    assert evidence_now(intent, cluster)[NODE].healed
    assert injector.undo(intent).done


def test_a_broker_can_load_the_agent(cluster: Cluster) -> None:
    agent = JvmAgent(cluster.runtime, cluster.node("kafka/broker-1").container)
    assert agent.rules() is None
    agent.load()
    held = agent.rules()
    assert held is not None
    assert held.properties["agent.loaded"] == "true"
