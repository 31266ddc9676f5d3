"""Rules of a topology on a real JobManager: it accepts a job that its Flink would reject."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.flink import duties as flink_duties
from streamquake.cluster.engines.flink.rest import jobmanager
from streamquake.cluster.jvm_agent import JvmAgent
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.catalogue.throw_in_task import ThrowInTask
from streamquake.faults.injection.intents import IntentLog
from streamquake.topologies.named_files import RULES
from streamquake.topologies.rule_scripts import rule_names
from tests.containers.flink_alone import attempts, flink_alone, running_job
from tests.injecting import FaultInjector
from tests.pace import at_pace, wait_until

pytestmark = [pytest.mark.container, pytest.mark.nightly]

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
    with flink_alone(docker_runtime, "rules", nodes, config) as cluster:
        yield cluster


def test_one_of_two_tasks_restarts_and_every_rule_found_its_method(
    cluster: Cluster, tmp_path: Path
) -> None:
    job = running_job(cluster, SQL)

    def completed() -> str | None:
        with jobmanager(cluster, "flink") as rest:
            done = rest.get(f"/jobs/{job}/checkpoints")["counts"]["completed"]
        return None if done else "no checkpoint"

    wait_until(completed, what="a checkpoint", limit_s=120, clock=cluster.clock)
    before = attempts(cluster, job)
    (source, total) = sorted(before, key=lambda name: "OverAggregate" in name)
    (name,) = flink_duties.on_duty(cluster, "flink", "node running subtask 0 of OverAggregate")
    injector = FaultInjector(cluster, IntentLog(tmp_path / "intents.jsonl"), limit_s=at_pace(60))
    _, injected = injector.inject_fault(ThrowInTask(operator="OverAggregate"), name)
    assert injected.done, injected.reason

    wait_until(
        lambda: None if attempts(cluster, job).get(total, (0, 0))[0] == 1 else "not yet",
        what="task running again",
        limit_s=120,
        clock=cluster.clock,
    )
    assert attempts(cluster, job)[source] == before[source]
    held = JvmAgent(cluster.runtime, cluster.node("flink/jobmanager-1").container).rules()
    assert held is not None
    assert set(held.texts) == set(rule_names(SCRIPT))
    placed = {name for name, text in held.texts.items() if "Transformed in:" in text}
    assert placed == set(rule_names(SCRIPT))
    assert "exception" not in "".join(held.texts.values()).lower()
