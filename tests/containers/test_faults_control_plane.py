"""The control plane on real containers: leaders that die, savepoints, another parallelism.

One cluster of ZooKeeper, HDFS and Flink with two JobManagers and the adaptive scheduler; its job
reads from a generator, so that no broker is needed.
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
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.faults.fault import Evidence
from streamquake.faults.injection.injection import evidence_now
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.schedule.target import parse_target, resolve
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.reports.record.event import Action, EventDraft
from streamquake.topologies.model import Topology
from tests.injecting import FaultInjector, made
from tests.reviving import coming_back

pytestmark = pytest.mark.container

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
    """The cluster, with its job running three subtasks wide."""
    ensure_images(TOPOLOGY, docker_runtime.images(), print)
    made = Cluster(
        run_id=f"control-{secrets.token_hex(3)}",
        topology=TOPOLOGY,
        runtime=docker_runtime,
        clock=SystemClock(),
    )
    owner = {labels.OWNER: labels.owner_of_this_process()}
    try:
        start_cluster(made, tags=owner, limit_s=240, show_message=print)
        spec = JobSpec(name="control-plane", sql=SQL, parallelism=3)
        made.run.job = CurrentJob(service="flink", id=FlinkEngine().submit(made, "flink", spec))
        yield made
    finally:
        assert remove_cluster(made.runtime, made.run_id) == []


@pytest.fixture(autouse=True)
def whole(cluster: Cluster) -> None:
    await_whole(cluster)


def await_whole(cluster: Cluster) -> None:
    wait_until(
        lambda: coming_back(cluster) or _job_pending(cluster),
        what="cluster and job whole",
        limit_s=240,
        clock=cluster.clock,
    )


def _job_pending(cluster: Cluster) -> str | None:
    assert cluster.run.job is not None
    return FlinkEngine().job_pending(cluster, "flink", cluster.run.job.id)


@contextmanager
def followed(cluster: Cluster) -> Iterator[list[EventDraft]]:
    """What the engine tells of the job meanwhile."""
    assert cluster.run.job is not None
    notes: list[EventDraft] = []
    stop = threading.Event()
    args = (cluster, "flink", cluster.run.job.id, notes.append, lambda *_: None, stop)
    thread = threading.Thread(target=FlinkEngine().follow, args=args)
    thread.start()
    try:
        yield notes
    finally:
        stop.set()
        thread.join(timeout=20)


@pytest.fixture
def injector(cluster: Cluster, tmp_path: Path) -> FaultInjector:
    return FaultInjector(cluster, IntentLog(tmp_path / "intents.jsonl"), limit_s=60)


def _evidence(cluster: Cluster, intent: Intent) -> Evidence:
    (found,) = evidence_now(intent, cluster).values()
    return found


TAKEN_OVER = {Action.JOB_RESTARTING, Action.JOB_RESTORED, Action.JOB_RUNNING}
"""What is told of a job that another JobManager has taken over, each by a look of its own."""


def first(notes: list[EventDraft], action: Action, after: int) -> EventDraft:
    """The first of its kind after so many notes."""
    return next(note for note in notes[after:] if note.action == action)


def test_leader_standby_and_subtask_are_found_by_what_they_do(cluster: Cluster) -> None:
    def named(target: str) -> list[str]:
        return [t.name for t in resolve(parse_target(target), cluster, random.Random(0))]

    (active,), (standby,) = named("the active jobmanager"), named("the standby jobmanager")
    assert {active, standby} == {"flink/jobmanager-1", "flink/jobmanager-2"}
    places = [named(f"the node running subtask {n} of numbers") for n in range(3)]
    assert {name for (name,) in places} == {"flink/taskmanager-1", "flink/taskmanager-2"}
    with pytest.raises(LookupError, match="no vertex"):
        named("the node running subtask 0 of unknown")
    with pytest.raises(LookupError, match="subtasks 0 to 2"):
        named("the node running subtask 3 of numbers")


def test_a_savepoint_is_written_to_hdfs(cluster: Cluster, injector: FaultInjector) -> None:
    with injector.in_effect(made("savepoint"), "the job") as (intent, _):
        pass
    seen = _evidence(cluster, intent).observations
    assert str(seen["path"]).startswith("hdfs://hdfs-namenode-1:8020/flink/savepoints/savepoint-")
    assert seen["size_bytes"] > 0


def test_a_job_gets_wider_and_narrow_again(cluster: Cluster, injector: FaultInjector) -> None:
    with injector.in_effect(made("rescale", to=4), "the job") as (intent, _):
        seen = _evidence(cluster, intent).observations
        assert {v["running"] for v in seen["vertices"].values()} == {4}
    seen = _evidence(cluster, intent).observations
    assert {v["running"] for v in seen["vertices"].values()} == {3}


@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_the_other_jobmanager_takes_the_job_over(
    fault: str, cluster: Cluster, injector: FaultInjector
) -> None:
    engine, before = FlinkEngine(), flink_ha.leader(cluster, "flink")
    with followed(cluster) as notes:
        seen = {Action.JOB_RUNNING, Action.CHECKPOINT_COMPLETED}
        wait_until(
            lambda: str(missing) if (missing := seen - {n.action for n in notes}) else None,
            what="job seen running, with a checkpoint",
            limit_s=120,
            clock=cluster.clock,
        )
        recorded = len(notes)
        with injector.in_effect(made(fault), "the active jobmanager"):

            def taken_over() -> str | None:
                missing = TAKEN_OVER - {n.action for n in notes[recorded:]}
                return f"not told: {missing}" if missing else _job_pending(cluster)

            def message() -> str | None:
                reason = engine.pending(cluster, "flink")
                as_it_is = reason is None if fault == "kill" else before.name in str(reason)
                return None if as_it_is else f"said of the cluster: {reason}"

            wait_until(taken_over, what="taken over", limit_s=180, clock=cluster.clock)
            assert flink_ha.leader(cluster, "flink").name != before.name
            wait_until(message, what="who is missing", limit_s=60, clock=cluster.clock)
    assert first(notes, Action.JOB_RESTORED, recorded).value["checkpoint"] > 0
    assert Action.JOB_ENDED not in [n.action for n in notes]
    if fault == "pause":  # it may stay deaf for good, see `pause`: only a new one counts as whole
        cluster.runtime.kill(before.container)
    await_whole(cluster)


def test_a_job_is_submitted_while_one_jobmanager_is_dead(
    cluster: Cluster, injector: FaultInjector
) -> None:
    engine = FlinkEngine()
    with injector.in_effect(made("kill"), "the standby jobmanager"):
        spec = JobSpec(name="second", sql=SQL, parallelism=1)
        job = engine.submit(cluster, "flink", spec)
        wait_until(
            lambda: engine.job_pending(cluster, "flink", job),
            what="second job running",
            limit_s=180,
            clock=cluster.clock,
        )
        engine.cancel(cluster, "flink", job)
