"""Rules of a topology on a real JobManager: it accepts a job that its Flink would reject."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.engines.flink import duties as flink_duties
from streamquake.cluster.engines.flink.engine import FlinkEngine
from streamquake.cluster.engines.flink.rest import jobmanager
from streamquake.cluster.job import JobSpec
from streamquake.cluster.jvm_agent import JvmAgent
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.labels import OWNER, owner_of_this_process
from streamquake.faults.catalogue.throw_in_task import ThrowInTask
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.topologies.model import Topology
from streamquake.topologies.named_files import RULES
from streamquake.topologies.rule_scripts import rule_names
from tests.injecting import FaultInjector
from tests.pace import at_pace, wait_until

pytestmark = pytest.mark.container

SCRIPT = (RULES / "approximate-local-recovery.btm").read_text(encoding="utf-8")
SQL = """
CREATE TEMPORARY TABLE numbers (k INT, v BIGINT, arrived AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '200', 'fields.k.min' = '0', 'fields.k.max' = '9'
);
CREATE TEMPORARY TABLE sums (k INT, v BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO sums SELECT k, SUM(v) OVER (
  PARTITION BY k ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) FROM numbers;
"""


@pytest.fixture
def cluster(docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    """Two TaskManagers with one slot each: enough for a job of two tasks that share no slot."""
    nodes = {"jobmanager": {"rules": SCRIPT}, "taskmanager": {"count": 2, "memory_mb": 768}}
    config = {"execution.state-recovery.approximate-local-recovery": True}
    topology = Topology.model_validate(
        {"name": "t", "services": {"flink": {"engine": "flink", "nodes": nodes, "config": config}}}
    )
    ensure_images(topology, docker_runtime.images(), print)
    run_id = f"test-rules-{os.getpid()}"
    new_cluster = Cluster(
        run_id=run_id, topology=topology, runtime=docker_runtime, clock=SystemClock()
    )
    try:
        start_cluster(
            new_cluster,
            tags={OWNER: owner_of_this_process()},
            limit_s=at_pace(180),
            show_message=print,
        )
        yield new_cluster
    finally:
        assert remove_cluster(docker_runtime, run_id) == []


def _attempts(cluster: Cluster, job: str) -> Mapping[str, tuple[int, int]]:
    """Vertex -> attempt and start time of its one task, if it runs."""
    with jobmanager(cluster, "flink") as rest:
        vertices = rest.get(f"/jobs/{job}")["vertices"]
        tasks = {
            v["name"]: rest.get(f"/jobs/{job}/vertices/{v['id']}")["subtasks"][0] for v in vertices
        }
    return {
        name: (task["attempt"], task["start-time"])
        for name, task in tasks.items()
        if task["status"] == "RUNNING"
    }


def test_one_of_two_tasks_restarts_and_every_rule_found_its_method(
    cluster: Cluster, tmp_path: Path
) -> None:
    job = FlinkEngine().submit(cluster, "flink", JobSpec(name="sums", sql=SQL, parallelism=1))
    wait_until(
        lambda: FlinkEngine().job_pending(cluster, "flink", job),
        what="the job runs",
        limit_s=180,
        clock=cluster.clock,
    )

    def completed() -> str | None:
        with jobmanager(cluster, "flink") as rest:
            done = rest.get(f"/jobs/{job}/checkpoints")["counts"]["completed"]
        return None if done else "no checkpoint"

    wait_until(completed, what="a checkpoint", limit_s=120, clock=cluster.clock)
    before = _attempts(cluster, job)
    (source, total) = sorted(before, key=lambda name: "OverAggregate" in name)
    (name,) = flink_duties.on_duty(cluster, "flink", "node running subtask 0 of OverAggregate")
    injector = FaultInjector(cluster, IntentLog(tmp_path / "intents.jsonl"), limit_s=at_pace(60))
    _, injected = injector.inject_fault(ThrowInTask(operator="OverAggregate"), name)
    assert injected.done, injected.reason

    wait_until(
        lambda: None if _attempts(cluster, job).get(total, (0, 0))[0] == 1 else "not yet",
        what="task running again",
        limit_s=120,
        clock=cluster.clock,
    )
    assert _attempts(cluster, job)[source] == before[source]
    held = JvmAgent(cluster.runtime, cluster.node("flink/jobmanager-1").container).rules()
    assert held is not None
    assert set(held.texts) == set(rule_names(SCRIPT))
    placed = {name for name, text in held.texts.items() if "Transformed in:" in text}
    assert placed == set(rule_names(SCRIPT))
    assert "exception" not in "".join(held.texts.values()).lower()
