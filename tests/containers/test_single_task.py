"""Single-task failover on a real cluster: a task in the middle and a source fail, also while
another task is silent, and no other task restarts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.flink import duties as flink_duties
from streamquake.cluster.engines.flink.rest import jobmanager
from streamquake.cluster.jvm_agent import JvmAgent, Rules
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.catalogue.throw_in_task import ThrowInTask
from streamquake.faults.fault import Fault
from streamquake.faults.injection.intents import IntentLog
from streamquake.topologies.named_files import RULES
from streamquake.topologies.rule_scripts import rule_names
from tests.containers.flink_alone import attempts, flink_alone, running_job
from tests.injecting import FaultInjector
from tests.pace import at_pace, wait_until

pytestmark = [pytest.mark.container, pytest.mark.nightly]

LOCAL = (RULES / "approximate-local-recovery.btm").read_text(encoding="utf-8")
SINGLE = (RULES / "single-task.btm").read_text(encoding="utf-8")
SOURCE, MIDDLE = "Source:", "OverAggregate[4]"
DROPPED = "single-task.dropped.records"
DID_NOT_COME = re.compile("The consumer of .* did not come: its records are dropped")
SQL = """
CREATE TEMPORARY TABLE numbers (k INT, v BIGINT, arrived AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '200', 'fields.k.min' = '0', 'fields.k.max' = '9'
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


@pytest.fixture(scope="module")
def cluster(docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    """One slot more than the job has tasks, so that a task restarts before a killed node does."""
    nodes = {
        "jobmanager": {"rules": [LOCAL, SINGLE]},
        "taskmanager": {"count": 4, "memory_mb": 768, "rules": SINGLE},
    }
    config = {
        "execution.state-recovery.approximate-local-recovery": True,
        "execution.checkpointing.interval": "2s",
    }
    with flink_alone(docker_runtime, "single-task", nodes, config) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> str:
    submitted = running_job(cluster, SQL)
    _another_checkpoint(cluster, submitted)
    return submitted


def _completed(cluster: Cluster, job: str) -> int:
    with jobmanager(cluster, "flink") as rest:
        return int(rest.get(f"/jobs/{job}/checkpoints")["counts"]["completed"])


def _another_checkpoint(cluster: Cluster, job: str) -> None:
    before = _completed(cluster, job)
    wait_until(
        lambda: None if _completed(cluster, job) > before else "none",
        what="another checkpoint",
        limit_s=120,
        clock=cluster.clock,
    )


def _node_of(cluster: Cluster, vertex: str) -> str:
    (name,) = flink_duties.on_duty(cluster, "flink", f"node running subtask 0 of {vertex}")
    return name


def _dropped(cluster: Cluster, producer: Node) -> int:
    """The records that a TaskManager dropped so far."""
    return int(_rules_of(cluster, producer).properties.get(DROPPED, "0"))


def _rules_of(cluster: Cluster, node: Node) -> Rules:
    """The rules in the JVM of a node. One that was just restarted may not have loaded its agent
    yet."""
    agent = JvmAgent(cluster.runtime, node.container)

    def pending() -> str | None:
        return "no agent answers" if agent.rules() is None else None

    wait_until(pending, what=f"the agent of {node.name}", limit_s=60, clock=cluster.clock)
    rules = agent.rules()
    assert rules is not None
    return rules


def _free_slot(cluster: Cluster) -> str | None:
    with jobmanager(cluster, "flink") as rest:
        return None if rest.get("/overview")["slots-available"] else "no slot is free"


def _injector(cluster: Cluster, folder: Path) -> FaultInjector:
    return FaultInjector(cluster, IntentLog(folder / "intents.jsonl"), limit_s=at_pace(60))


def _only_one_restarts(cluster: Cluster, job: str, vertex: str, fault: Fault, folder: Path) -> None:
    """Inject a fault into the node of a vertex, and compare the attempts before and after it."""

    def restarted() -> str | None:
        now = attempts(cluster, job).get(failed)
        return "not yet" if now in (None, before[failed]) else None

    wait_until(lambda: _free_slot(cluster), what="a free slot", limit_s=120, clock=cluster.clock)
    before = attempts(cluster, job)
    assert len(before) == 3
    (failed,) = (name for name in before if vertex in name)
    injector = _injector(cluster, folder)
    with injector.in_effect(fault, _node_of(cluster, vertex)):
        wait_until(restarted, what="task running again", limit_s=120, clock=cluster.clock)
    _another_checkpoint(cluster, job)
    after = attempts(cluster, job)
    assert after[failed][0] == before[failed][0] + 1
    assert {**after, failed: before[failed]} == before


def test_only_a_task_in_the_middle_that_throws_restarts(
    cluster: Cluster, job: str, tmp_path: Path
) -> None:
    _only_one_restarts(cluster, job, MIDDLE, ThrowInTask(operator=MIDDLE), tmp_path)


def test_only_a_task_in_the_middle_that_is_killed_restarts_and_its_producer_drops_records(
    cluster: Cluster, job: str, tmp_path: Path
) -> None:
    producer = cluster.node(_node_of(cluster, SOURCE))
    before = _dropped(cluster, producer)

    _only_one_restarts(cluster, job, MIDDLE, Kill(), tmp_path)

    assert _dropped(cluster, producer) > before


def test_only_a_source_that_is_killed_restarts(cluster: Cluster, job: str, tmp_path: Path) -> None:
    _only_one_restarts(cluster, job, SOURCE, Kill(), tmp_path)


def test_a_source_that_restarts_while_its_consumer_is_silent_drops_records(
    cluster: Cluster, job: str, tmp_path: Path
) -> None:
    wait_until(lambda: _free_slot(cluster), what="a free slot", limit_s=120, clock=cluster.clock)
    before = attempts(cluster, job)
    (source,) = (name for name in before if SOURCE in name)
    injector = _injector(cluster, tmp_path)

    def dropped() -> str | None:
        now = attempts(cluster, job)
        if source not in now or now[source] == before[source]:
            return f"running: {', '.join(now)}"
        producer = cluster.node(_node_of(cluster, SOURCE))
        log = cluster.runtime.logs(producer.container)
        return None if DID_NOT_COME.search(log) else f"{producer.name} waits for its consumer"

    node_of_source = _node_of(cluster, SOURCE)
    silent = injector.in_effect(Pause(), _node_of(cluster, MIDDLE))
    with silent, injector.in_effect(Kill(), node_of_source):
        wait_until(dropped, what="records dropped", limit_s=60, clock=cluster.clock)
        assert _dropped(cluster, cluster.node(_node_of(cluster, SOURCE))) > 0
    _another_checkpoint(cluster, job)
    after = attempts(cluster, job)
    assert after[source][0] == before[source][0] + 1
    (sink,) = (name for name in before if name != source and MIDDLE not in name)
    assert after[sink] == before[sink]


def test_every_rule_found_its_method(cluster: Cluster, job: str) -> None:
    texts: dict[str, str] = {}
    for node in cluster.of_service("flink"):
        if (
            node.spec.group.rules is not None
            and cluster.state(node).status == ContainerStatus.RUNNING
        ):
            rules = _rules_of(cluster, node)
            assert "exception" not in "".join(rules.texts.values()).lower()
            texts |= {name: text for name, text in rules.texts.items() if "Transformed in:" in text}
    assert set(texts) == {*rule_names(LOCAL), *rule_names(SINGLE)}


def test_after_three_failures_within_a_minute_all_tasks_restart(cluster: Cluster, job: str) -> None:
    """Every TaskManager throws four times, so the task fails again wherever it restarts."""
    wait_until(lambda: _free_slot(cluster), what="a free slot", limit_s=120, clock=cluster.clock)
    before = attempts(cluster, job)
    fault = ThrowInTask(operator=MIDDLE, times=4)
    for node in cluster.of_role("flink/taskmanager"):
        fault.inject(cluster, node)

    def restarted() -> str | None:
        now = attempts(cluster, job)
        return None if all(now.get(name, was) != was for name, was in before.items()) else "no"

    wait_until(restarted, what="all tasks restarted", limit_s=180, clock=cluster.clock)
    log = cluster.runtime.logs(cluster.node("flink/jobmanager-1").container)
    assert "all tasks restart, because it failed more than 3 times" in log
