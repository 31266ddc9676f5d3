"""A job that is restarted from its state, with a fake JobManager and a fake SQL gateway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import JobRejected
from streamquake.faults.catalogue.restart_job import RestartJob
from streamquake.faults.fault import Evidence, JobTarget
from streamquake.faults.schedule.target import find_job
from streamquake.harness.experiment.validation import fault_target_problem
from streamquake.topologies.model import Topology
from tests.fakes import WIDE, fake_cluster
from tests.fakes.worlds.control_plane import JOB, FakeFlink, FakeGateway

PATH, CLAIM = "execution.state-recovery.path", "execution.state-recovery.claim-mode"
UNMAPPED = "java.lang.IllegalStateException: Cannot map checkpoint/savepoint state for operator 1"


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


def flink(cluster: Cluster) -> FakeFlink:
    found = cluster.clients["flink"]
    assert isinstance(found, FakeFlink)
    return found


def gateway(cluster: Cluster) -> FakeGateway:
    found = cluster.clients["flink/gateway"]
    assert isinstance(found, FakeGateway)
    return found


def the_job(cluster: Cluster) -> JobTarget:
    return find_job(cluster)


def restart(**params: Any) -> RestartJob:
    return RestartJob.model_validate({"ready_s": 1, **params})


def injected(fault: RestartJob, cluster: Cluster) -> Evidence:
    """Inject; returns the evidence."""
    target = the_job(cluster)
    baseline = fault.baseline(cluster, target)
    fault.inject(cluster, target)
    return fault.evidence(cluster, target, baseline)


def test_a_cancelled_job_continues_from_its_newest_checkpoint(cluster: Cluster) -> None:
    evidence = injected(restart(), cluster)

    settings = gateway(cluster).settings
    assert (settings[PATH], settings[CLAIM]) == (f"hdfs://namenode/{JOB}/chk-3", "NO_CLAIM")
    assert flink(cluster).ended == {JOB: "CANCELED"}
    assert cluster.run.job is not None
    assert (cluster.run.job.id, cluster.run.job.restored_from) == (
        flink(cluster).job,
        settings[PATH],
    )
    assert evidence.in_effect
    assert evidence.observations["restored_from"] == settings[PATH]


@pytest.mark.parametrize(("origin", "path"), [("savepoint", "native"), ("canonical", "canonical")])
def test_a_stopped_job_continues_from_its_savepoint(
    origin: str, path: str, cluster: Cluster
) -> None:
    evidence = injected(restart(claim=True, **{"from": origin}), cluster)

    folder = "hdfs://hdfs-namenode-1:8020/flink/savepoints"
    settings = gateway(cluster).settings
    assert (settings[PATH], settings[CLAIM]) == (f"{folder}/{path}", "CLAIM")
    assert flink(cluster).ended == {JOB: "FINISHED"}
    assert evidence.in_effect


def test_a_second_restart_keeps_the_changes_of_the_first(cluster: Cluster) -> None:
    assert cluster.run.job is not None
    cluster.run.job = replace(cluster.run.job, values=VALUES)
    injected(restart(parallelism=2, config={"pipeline.object-reuse": True}), cluster)
    evidence = injected(restart(sql="running-totals.sql"), cluster)

    settings = gateway(cluster).settings
    assert settings["parallelism.default"] == "2"
    assert settings["pipeline.object-reuse"] == "true"
    assert settings[PATH] == "hdfs://namenode/job-2/chk-3"
    assert "totals" in gateway(cluster).statement
    assert "${" not in gateway(cluster).statement
    assert evidence.observations["parallelism"] == 2


VALUES: Mapping[str, str] = {
    "input": "numbers",
    "run": "r",
    "source.bootstrap": "k:1",
    "sink.bootstrap": "k:2",
    "sink.guarantee": "exactly-once",
    "sink.transaction-timeout-ms": "900000",
    "output.totals": "totals",
}


def test_a_restart_whose_state_cannot_be_mapped_has_the_engines_error(cluster: Cluster) -> None:
    flink(cluster).unmapped = UNMAPPED
    evidence = injected(restart(), cluster)

    assert evidence.in_effect
    assert (evidence.observations["state"], evidence.observations["reason"]) == ("failed", UNMAPPED)
    assert cluster.run.job is not None
    assert cluster.run.job.id == "job-2", "the run follows the job that failed"


def test_a_job_that_the_gateway_rejects_is_not_in_effect(cluster: Cluster) -> None:
    gateway(cluster).rejection = "SqlParserException: near INSERT"
    with pytest.raises(JobRejected, match="near INSERT"):
        restart().inject(cluster, the_job(cluster))
    assert cluster.run.job is not None
    assert cluster.run.job.id == JOB
    assert not restart().evidence(cluster, the_job(cluster), {"job": JOB}).in_effect


def test_a_job_without_a_checkpoint_is_not_cancelled(cluster: Cluster) -> None:
    flink(cluster).checkpoints = 0
    with pytest.raises(JobRejected, match="has completed no checkpoint"):
        restart().inject(cluster, the_job(cluster))
    assert flink(cluster).ended == {}


def test_a_checkpoint_that_is_removed_with_its_job_is_not_restored(cluster: Cluster) -> None:
    flink(cluster).retained = False
    with pytest.raises(JobRejected, match=r"removed its checkpoints; set execution\."):
        restart().inject(cluster, the_job(cluster))


def test_a_savepoint_that_fails_leaves_the_job_running(cluster: Cluster) -> None:
    flink(cluster).savepoints_fail = True
    with pytest.raises(
        JobRejected, match=r"did not stop with a savepoint: java.io.IOException: no"
    ):
        restart(**{"from": "savepoint"}).inject(cluster, the_job(cluster))
    assert flink(cluster).job == JOB


def test_a_job_whose_tasks_keep_failing_is_not_in_effect_and_has_a_reason(cluster: Cluster) -> None:
    flink(cluster).keeps_failing = "StateMigrationException: incompatible"
    evidence = injected(restart(), cluster)
    assert not evidence.in_effect
    assert evidence.observations["state"] == "coming"
    assert str(evidence.observations["reason"]).endswith("StateMigrationException: incompatible")


def test_a_job_that_starts_without_state_is_not_in_effect(cluster: Cluster) -> None:
    fault, target = restart(), the_job(cluster)
    fault.inject(cluster, target)
    flink(cluster).restored.clear()
    evidence = fault.evidence(cluster, target, {"job": JOB})
    assert (evidence.observations["state"], evidence.in_effect) == ("running", False)


def test_a_job_with_fewer_slots_than_requested_is_not_in_effect(cluster: Cluster) -> None:
    assert not injected(restart(parallelism=9), cluster).in_effect


def test_another_process_verifies_the_restart_by_the_running_job(cluster: Cluster) -> None:
    fault = restart()
    injected(fault, cluster)
    cluster.run.job = None
    assert fault.evidence(cluster, the_job(cluster), {"job": JOB}).in_effect
    assert not fault.evidence(cluster, the_job(cluster), {"job": "job-2"}).in_effect
    with pytest.raises(ValueError, match="only the run that submitted the job"):
        fault.inject(cluster, the_job(cluster))


def test_a_restart_with_an_unreachable_jobmanager_is_not_in_effect(cluster: Cluster) -> None:
    fault, target = restart(), the_job(cluster)
    fault.inject(cluster, target)
    cluster.runtime.kill(cluster.node("flink/jobmanager-1").container)
    assert not fault.evidence(cluster, target, {"job": JOB}).in_effect


def test_an_impossible_restart_is_rejected_before_the_run() -> None:
    document = WIDE.model_dump(by_alias=True)
    del document["services"]["hdfs"]
    no_store = Topology.model_validate(document)
    message = fault_target_problem(restart(), "the job", no_store)
    assert message is not None
    assert "add a service of the engine hdfs" in message
    with pytest.raises(ValidationError, match='did you mean "running-totals"'):
        restart(sql="running-total.sql")
