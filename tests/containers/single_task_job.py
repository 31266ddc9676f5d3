"""A job of a source, a task in the middle and a last task, with single-task failover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.flink import duties as flink_duties
from streamquake.cluster.engines.flink.rest import jobmanager
from streamquake.cluster.jvm_agent import JvmAgent, Rules
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.fault import Fault
from streamquake.faults.injection.intents import IntentLog
from streamquake.topologies.named_files import RULES
from tests.containers.flink_alone import attempts, flink_alone, running_job
from tests.injecting import FaultInjector
from tests.pace import at_pace, wait_until

LOCAL = (RULES / "approximate-local-recovery.btm").read_text(encoding="utf-8")
SINGLE = (RULES / "single-task.btm").read_text(encoding="utf-8")
SOURCE, MIDDLE, LAST = "Source:", "OverAggregate[4]", "sums["
DROPPED = "single-task.dropped.records"
SQL = """
CREATE TEMPORARY TABLE numbers (k INT, v BIGINT, arrived AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '{rows_per_s}',
  'fields.k.min' = '0', 'fields.k.max' = '9'
);
CREATE TEMPORARY TABLE sums (k INT, v BIGINT) WITH ('connector' = 'blackhole');
CREATE TEMPORARY VIEW first_sums AS
SELECT k, k + 1 AS other, arrived, SUM(v) OVER (
  PARTITION BY k ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) AS v FROM numbers;
INSERT INTO sums SELECT k, MAX(v) OVER (
  PARTITION BY other ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) FROM first_sums;
"""


@contextmanager
def single_task_cluster(runtime: DockerRuntime, name: str, **config: Any) -> Iterator[Cluster]:
    """One slot more than the job has tasks, so that a task restarts before a killed node does."""
    nodes = {
        "jobmanager": {"rules": [LOCAL, SINGLE]},
        "taskmanager": {"count": 4, "memory_mb": 768, "rules": SINGLE},
    }
    settings = {
        "execution.state-recovery.approximate-local-recovery": True,
        "execution.checkpointing.interval": "2s",
        **config,
    }
    with flink_alone(runtime, name, nodes, settings) as cluster:
        yield cluster


def start_job(cluster: Cluster, rows_per_s: int = 200) -> SingleTaskJob:
    """A new job that has completed a checkpoint."""
    job = SingleTaskJob(cluster, running_job(cluster, SQL.format(rows_per_s=rows_per_s)))
    job.await_checkpoint()
    return job


@dataclass(frozen=True)
class SingleTaskJob:
    """The running job `id`."""

    cluster: Cluster
    id: str

    def attempts(self) -> Mapping[str, tuple[int, int]]:
        """Vertex -> attempt and start time of its task, if it runs."""
        return attempts(self.cluster, self.id)

    def node_of(self, vertex: str) -> str:
        duty = f"node running subtask 0 of {vertex}"
        (name,) = flink_duties.on_duty(self.cluster, "flink", duty)
        return name

    def dropped_by(self, node: str) -> int:
        """The records that a TaskManager dropped so far."""
        rules = rules_of(self.cluster, self.cluster.node(node))
        return int(rules.properties.get(DROPPED, "0"))

    def await_checkpoint(self) -> None:
        before = self._completed()
        wait_until(
            lambda: None if self._completed() > before else "none",
            what="another checkpoint",
            limit_s=120,
            clock=self.cluster.clock,
        )

    def _completed(self) -> int:
        with jobmanager(self.cluster, "flink") as rest:
            return int(rest.get(f"/jobs/{self.id}/checkpoints")["counts"]["completed"])

    def await_free_slot(self) -> None:
        def pending() -> str | None:
            with jobmanager(self.cluster, "flink") as rest:
                free = rest.get("/overview")["slots-available"]
            return None if free else "no slot is free"

        wait_until(pending, what="a free slot", limit_s=120, clock=self.cluster.clock)

    def fail_one(self, vertex: str, fault: Fault, folder: Path) -> None:
        """Inject a fault into the node of a vertex: no other task restarts."""

        def restarted() -> str | None:
            now = self.attempts().get(failed)
            return "not yet" if now in (None, before[failed]) else None

        self.await_free_slot()
        before = self.attempts()
        assert len(before) == 3
        (failed,) = (name for name in before if vertex in name)
        with injector(self.cluster, folder).in_effect(fault, self.node_of(vertex)):
            wait_until(restarted, what="task running again", limit_s=120, clock=self.cluster.clock)
        self.await_checkpoint()
        after = self.attempts()
        assert after[failed][0] == before[failed][0] + 1
        assert {**after, failed: before[failed]} == before


def injector(cluster: Cluster, folder: Path) -> FaultInjector:
    return FaultInjector(cluster, IntentLog(folder / "intents.jsonl"), limit_s=at_pace(60))


def rules_of(cluster: Cluster, node: Node) -> Rules:
    """The rules in the JVM of a node. One that was just restarted may not have loaded its agent
    yet."""
    agent = JvmAgent(cluster.runtime, node.container)

    def pending() -> str | None:
        return "no agent answers" if agent.rules() is None else None

    wait_until(pending, what=f"the agent of {node.name}", limit_s=60, clock=cluster.clock)
    rules = agent.rules()
    assert rules is not None
    return rules
