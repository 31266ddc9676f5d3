"""The control plane on real containers: failover of the leader, savepoints, rescaling.

One cluster of ZooKeeper, HDFS and Flink with two JobManagers and the adaptive scheduler; its job
reads from a generator, so it needs no broker.
"""

from __future__ import annotations

import random
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.engines.flink import ha as flink_ha
from streamquake.cluster.engines.flink.engine import FlinkEngine
from streamquake.cluster.job import CurrentJob, JobSpec
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.fault import Evidence
from streamquake.faults.injection.injection import evidence_now
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.schedule.target import parse_target, resolve
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.reports.record.event import Action, EventDraft
from streamquake.topologies.model import Topology
from tests.injecting import FaultInjector, build_fault
from tests.pace import at_pace, wait_until
from tests.reviving import restart_ended_nodes
from tests.tiers import others_nightly

pytestmark = [pytest.mark.container, pytest.mark.nightly]

TOPOLOGY = Topology.model_validate(
    {
        "name": "control-plane",
        "services": {
            "hdfs": {"engine": "hdfs", "nodes": {"namenode": 1, "datanode": 1}},
            "zookeeper": {"engine": "zookeeper", "nodes": {"server": 1}},
            "flink": {
                "engine": "flink",
                "nodes": {"jobmanager": 2, "taskmanager": {"count": 2, "slots": 2}},
                "config": {
                    "high-availability.type": "zookeeper",
                    "execution.checkpointing.interval": "1s",
                    "jobmanager.scheduler": "adaptive",
                    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "1s",
                    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "1s",
                    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "1s",
                },
            },
        },
    }
)
SQL = """
CREATE TABLE numbers (n BIGINT, k INT) WITH
  ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.k.min' = '1', 'fields.k.max' = '9');
CREATE TABLE nowhere (k INT, total BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO nowhere SELECT k, COUNT(*) FROM numbers GROUP BY k;
"""


@pytest.fixture(scope="module")
def cluster(docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    """The cluster, with a job of parallelism 3."""
    ensure_images(TOPOLOGY, docker_runtime.images(), print)
    new_cluster = Cluster(
        run_id=f"control-{secrets.token_hex(3)}",
        topology=TOPOLOGY,
        runtime=docker_runtime,
        clock=SystemClock(),
    )
    owner = {labels.OWNER: labels.owner_of_this_process()}
    try:
        start_cluster(new_cluster, tags=owner, limit_s=at_pace(240), show_message=print)
        spec = JobSpec(name="control-plane", sql=SQL, parallelism=3)
        new_cluster.run.job = CurrentJob(
            service="flink", id=FlinkEngine().submit(new_cluster, "flink", spec)
        )
        yield new_cluster
    finally:
        assert remove_cluster(new_cluster.runtime, new_cluster.run_id) == []


@pytest.fixture(autouse=True)
def ready_cluster(cluster: Cluster) -> None:
    await_ready(cluster)


def await_ready(cluster: Cluster) -> None:
    wait_until(
        lambda: restart_ended_nodes(cluster) or _job_pending(cluster),
        what="cluster and job ready",
        limit_s=240,
        clock=cluster.clock,
    )


def _job_pending(cluster: Cluster) -> str | None:
    assert cluster.run.job is not None
    return FlinkEngine().job_pending(cluster, "flink", cluster.run.job.id)


@contextmanager
def record_events(cluster: Cluster) -> Iterator[list[EventDraft]]:
    """Record the events of the job during the block."""
    assert cluster.run.job is not None
    events: list[EventDraft] = []
    stop = threading.Event()
    args = (cluster, "flink", cluster.run.job.id, events.append, lambda *_: None, stop)
    thread = threading.Thread(target=FlinkEngine().follow, args=args)
    thread.start()
    try:
        yield events
    finally:
        stop.set()
        thread.join(timeout=20)


@pytest.fixture
def injector(cluster: Cluster, tmp_path: Path) -> FaultInjector:
    return FaultInjector(cluster, IntentLog(tmp_path / "intents.jsonl"), limit_s=at_pace(60))


def _evidence(cluster: Cluster, intent: Intent) -> Evidence:
    (found,) = evidence_now(intent, cluster).values()
    return found


TAKEN_OVER = {Action.JOB_RESTARTING, Action.JOB_RESTORED, Action.JOB_RUNNING}
"""The events of a job that another JobManager took over; each is observed by a separate poll."""


def first(events: list[EventDraft], action: Action, after: int) -> EventDraft:
    """The first event with this action after the first `after` events."""
    return next(event for event in events[after:] if event.action == action)


def test_leader_standby_and_subtask_targets_are_resolved(cluster: Cluster) -> None:
    def names_of(target: str) -> list[str]:
        return [t.name for t in resolve(parse_target(target), cluster, random.Random(0))]

    (active,), (standby,) = names_of("the active jobmanager"), names_of("the standby jobmanager")
    assert {active, standby} == {"flink/jobmanager-1", "flink/jobmanager-2"}
    places = [names_of(f"the node running subtask {n} of numbers") for n in range(3)]
    assert {name for (name,) in places} == {"flink/taskmanager-1", "flink/taskmanager-2"}
    with pytest.raises(LookupError, match="no vertex"):
        names_of("the node running subtask 0 of unknown")
    with pytest.raises(LookupError, match="subtasks 0 to 2"):
        names_of("the node running subtask 3 of numbers")


def test_a_savepoint_is_written_to_hdfs(cluster: Cluster, injector: FaultInjector) -> None:
    with injector.in_effect(build_fault("savepoint"), "the job") as (intent, _):
        pass
    seen = _evidence(cluster, intent).observations
    assert str(seen["path"]).startswith("hdfs://hdfs-namenode-1:8020/flink/savepoints/savepoint-")
    assert seen["size_bytes"] > 0


def test_a_job_is_rescaled_and_scaled_back(cluster: Cluster, injector: FaultInjector) -> None:
    with injector.in_effect(build_fault("rescale", to=4), "the job") as (intent, _):
        seen = _evidence(cluster, intent).observations
        assert {v["running"] for v in seen["vertices"].values()} == {4}
    seen = _evidence(cluster, intent).observations
    assert {v["running"] for v in seen["vertices"].values()} == {3}


@pytest.mark.parametrize("fault", others_nightly(["kill", "pause"], ["kill"]))
def test_the_standby_jobmanager_takes_over_the_job(
    fault: str, cluster: Cluster, injector: FaultInjector
) -> None:
    engine, before = FlinkEngine(), flink_ha.leader(cluster, "flink")
    with record_events(cluster) as events:
        seen = {Action.JOB_RUNNING, Action.CHECKPOINT_COMPLETED}
        wait_until(
            lambda: str(missing) if (missing := seen - {n.action for n in events}) else None,
            what="job running, with a completed checkpoint",
            limit_s=120,
            clock=cluster.clock,
        )
        count_before = len(events)
        with injector.in_effect(build_fault(fault), "the active jobmanager"):

            def taken_over() -> str | None:
                missing = TAKEN_OVER - {n.action for n in events[count_before:]}
                return f"not recorded: {missing}" if missing else _job_pending(cluster)

            def message() -> str | None:
                reason = engine.pending(cluster, "flink")
                is_expected = reason is None if fault == "kill" else before.name in str(reason)
                return None if is_expected else f"the cluster's status is: {reason}"

            wait_until(taken_over, what="taken over", limit_s=180, clock=cluster.clock)
            assert flink_ha.leader(cluster, "flink").name != before.name
            wait_until(message, what="status of the cluster", limit_s=60, clock=cluster.clock)
    assert first(events, Action.JOB_RESTORED, count_before).value["checkpoint"] > 0
    assert Action.JOB_ENDED not in [n.action for n in events]
    if fault == "pause":  # it may never respond again, see `pause`; only a new one is ready
        cluster.runtime.kill(before.container)
    await_ready(cluster)


@pytest.mark.nightly
def test_a_job_is_submitted_while_one_jobmanager_is_dead(
    cluster: Cluster, injector: FaultInjector
) -> None:
    engine = FlinkEngine()
    with injector.in_effect(build_fault("kill"), "the standby jobmanager"):
        spec = JobSpec(name="second", sql=SQL, parallelism=1)
        job = engine.submit(cluster, "flink", spec)
        wait_until(
            lambda: engine.job_pending(cluster, "flink", job),
            what="second job running",
            limit_s=180,
            clock=cluster.clock,
        )
        engine.cancel(cluster, "flink", job)
