"""Savepoint, rescale and the duties of Flink's nodes, with a fake JobManager."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import JobRejected
from streamquake.cluster.engines.flink.duties import ANSWER_S
from streamquake.cluster.engines.flink.rest import FlinkError
from streamquake.faults.catalogue.rescale import Rescale
from streamquake.faults.catalogue.savepoint import Savepoint
from streamquake.faults.fault import Fault, JobTarget
from streamquake.faults.schedule.target import find_job, parse_target, resolve
from streamquake.harness.experiment.validation import fault_target_problem
from streamquake.topologies.model import Topology
from tests.fakes import WIDE, fake_cluster
from tests.fakes.worlds.control_plane import SINGLE, FakeFlink
from tests.fakes.worlds.control_plane import WIDE as WIDE_VERTEX


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


def flink(cluster: Cluster) -> FakeFlink:
    found = cluster.clients["flink"]
    assert isinstance(found, FakeFlink)
    return found


def the_job(cluster: Cluster) -> JobTarget:
    return find_job(cluster)


def injected(fault: Fault, cluster: Cluster) -> Mapping[str, Any]:
    """Inject; returns the baseline."""
    baseline = fault.baseline(cluster, the_job(cluster))
    fault.inject(cluster, the_job(cluster))
    return baseline


def without(service: str, **config: str) -> Topology:
    """The wide topology without a service, and with another configuration of Flink."""
    document = WIDE.model_dump(by_alias=True)
    document["services"].pop(service, None)
    document["services"]["flink"]["config"] = config
    document["links"] = {}
    return Topology.model_validate(document)


def on_duty(duty: str, cluster: Cluster) -> list[str]:
    return [t.name for t in resolve(parse_target(duty), cluster, random.Random(0))]


def test_a_savepoint_is_in_effect_only_when_it_is_completed(cluster: Cluster) -> None:
    fault = Savepoint()
    baseline = injected(fault, cluster)
    started = fault.evidence(cluster, the_job(cluster), baseline)
    assert (started.in_effect, started.healed) == (False, False)
    done = fault.evidence(cluster, the_job(cluster), baseline)
    assert (done.in_effect, done.healed) == (True, True)
    assert str(done.observations["path"]).startswith(
        "hdfs://hdfs-namenode-1:8020/flink/savepoints/"
    )
    assert (done.observations["size_bytes"], done.observations["duration_ms"]) == (6550, 669)


def test_an_older_savepoint_does_not_count_as_the_faults(cluster: Cluster) -> None:
    injected(Savepoint(), cluster)
    flink(cluster).polls_until_done = 0
    baseline = Savepoint().baseline(cluster, the_job(cluster))
    evidence = Savepoint().evidence(cluster, the_job(cluster), baseline)
    assert not evidence.in_effect
    assert evidence.observations["savepoints"] == 0


def test_a_failed_savepoint_is_not_in_effect_and_has_a_reason(cluster: Cluster) -> None:
    flink(cluster).savepoints_fail = True
    flink(cluster).polls_until_done = 0
    baseline = injected(Savepoint(), cluster)
    evidence = Savepoint().evidence(cluster, the_job(cluster), baseline)
    assert (evidence.in_effect, evidence.healed) == (False, True)
    assert evidence.observations["reason"] == "java.io.IOException: no space"


def test_rescaling_changes_the_widest_vertices_only(cluster: Cluster) -> None:
    baseline = injected(Rescale(to=2), cluster)
    assert baseline == {"parallelism": {WIDE_VERTEX: 3}}
    assert flink(cluster).wanted == {WIDE_VERTEX: 2, SINGLE: 1}
    assert Rescale(to=2).evidence(cluster, the_job(cluster), baseline).in_effect
    Rescale(to=2).heal(cluster, the_job(cluster), baseline)
    assert flink(cluster).wanted == {WIDE_VERTEX: 3, SINGLE: 1}


def test_a_rescale_without_enough_slots_is_not_in_effect(cluster: Cluster) -> None:
    baseline = injected(Rescale(to=9), cluster)
    evidence = Rescale(to=9).evidence(cluster, the_job(cluster), baseline)
    assert (evidence.in_effect, evidence.healed) == (False, False)
    assert evidence.observations["vertices"][WIDE_VERTEX] == {
        "name": "Source: input",
        "parallelism": 3,
        "running": 3,
        "wanted": 9,
    }


def test_a_rescale_to_the_current_parallelism_is_rejected(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="parallelism of 3 already"):
        Rescale(to=3).inject(cluster, the_job(cluster))
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Rescale(to=0)


@pytest.mark.parametrize("fault", [Savepoint(), Rescale(to=2)])
def test_a_removed_job_is_healed_and_an_unreachable_jobmanager_proves_nothing(
    fault: Fault, cluster: Cluster
) -> None:
    baseline = injected(fault, cluster)
    jobmanager = cluster.node("flink/jobmanager-1").container
    cluster.runtime.kill(jobmanager)
    unreachable = fault.evidence(cluster, the_job(cluster), baseline)
    assert (unreachable.in_effect, unreachable.healed) == (False, False)
    cluster.runtime.start_again(jobmanager)
    flink(cluster).job = None
    fault.heal(cluster, the_job(cluster), baseline)
    assert fault.evidence(cluster, the_job(cluster), baseline).healed


def test_a_request_that_flink_rejects_raises_job_rejected(cluster: Cluster) -> None:
    baseline = injected(Rescale(to=2), cluster)
    flink(cluster).adaptive = False
    with pytest.raises(JobRejected, match="adaptive scheduler"):
        Rescale(to=2).heal(cluster, the_job(cluster), baseline)


def test_a_fault_that_the_topology_cannot_support_is_rejected_before_the_start() -> None:
    default = fault_target_problem(Rescale(to=2), "the job", without("none"))
    assert "flink has default; set `config: {jobmanager.scheduler: adaptive}`" in str(default)
    no_store = fault_target_problem(Savepoint(), "the job", without("hdfs"))
    assert "add a service of the engine hdfs" in str(no_store)
    assert fault_target_problem(Savepoint(), "the job", WIDE) is None


def test_the_only_jobmanager_is_the_active_one_and_has_no_standby(cluster: Cluster) -> None:
    assert on_duty("the active jobmanager", cluster) == ["flink/jobmanager-1"]
    with pytest.raises(LookupError, match=r"no engine knows \"the standby jobmanager\""):
        on_duty("the standby jobmanager", cluster)
    cluster.runtime.kill(cluster.node("flink/jobmanager-1").container)
    with pytest.raises(LookupError, match="no jobmanager of flink leads now"):
        on_duty("the active jobmanager", cluster)


def test_the_node_of_a_subtask_is_found_through_the_job(cluster: Cluster) -> None:
    assert on_duty("the node running subtask 1 of input", cluster) == ["flink/taskmanager-2"]
    for subtask, message in (
        ("subtask 0 of unknown", "no vertex"),
        ("subtask 3 of input", "0 to 2"),
    ):
        with pytest.raises(LookupError, match=message):
            on_duty(f"the node running {subtask}", cluster)
    cluster.runtime.kill(cluster.node("flink/taskmanager-2").container)
    with pytest.raises(LookupError, match="is CANCELED"):
        on_duty("the node running subtask 1 of input", cluster)
    cluster.run.job = None
    assert on_duty("the node running subtask 0 of input", cluster) == ["flink/taskmanager-1"]
    flink(cluster).job = None
    with pytest.raises(LookupError, match="expected one running job of flink, got 0"):
        on_duty("the node running subtask 0 of input", cluster)


@pytest.mark.parametrize("answers_after", [2, 1000])
def test_a_jobmanager_that_answers_with_an_internal_error_is_queried_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, answers_after: int
) -> None:
    requests: list[str] = []
    answer = flink(cluster).get

    def get(path: str, **parameters: str) -> Any:
        requests.append(path)
        if len(requests) <= answers_after:
            raise FlinkError(500, "java.util.concurrent.CancellationException")
        return answer(path, **parameters)

    monkeypatch.setattr(flink(cluster), "get", get)
    if answers_after == 2:
        assert on_duty("the node running subtask 1 of input", cluster) == ["flink/taskmanager-2"]
        return
    began_ns = cluster.clock.now_ns()
    with pytest.raises(LookupError, match=r"cannot be found now: .*CancellationException"):
        on_duty("the node running subtask 1 of input", cluster)
    assert ANSWER_S <= (cluster.clock.now_ns() - began_ns) / 1e9 < ANSWER_S + 1
