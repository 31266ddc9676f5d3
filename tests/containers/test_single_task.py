"""Single-task failover on a real cluster: a task in the middle and a source fail, also while
another task is silent, and no other task restarts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.catalogue.throw_in_task import ThrowInTask
from streamquake.topologies.rule_scripts import rule_names
from tests.containers.single_task_job import (
    LAST,
    LOCAL,
    MIDDLE,
    SINGLE,
    SOURCE,
    SingleTaskJob,
    injector,
    rules_of,
    single_task_cluster,
    start_job,
)
from tests.pace import wait_until

pytestmark = [pytest.mark.container, pytest.mark.nightly]

DID_NOT_COME = re.compile("The consumer of .* did not come: its records are dropped")


@pytest.fixture(scope="module")
def cluster(docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    with single_task_cluster(docker_runtime, "single-task") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> SingleTaskJob:
    return start_job(cluster)


def test_only_a_task_in_the_middle_that_throws_restarts(job: SingleTaskJob, tmp_path: Path) -> None:
    job.fail_one(MIDDLE, ThrowInTask(operator=MIDDLE), tmp_path)


def test_only_a_task_in_the_middle_that_is_killed_restarts_and_its_producer_drops_records(
    job: SingleTaskJob, tmp_path: Path
) -> None:
    producer = job.node_of(SOURCE)
    before = job.dropped_by(producer)

    job.fail_one(MIDDLE, Kill(), tmp_path)

    assert job.dropped_by(producer) > before


def test_only_a_source_that_is_killed_restarts(job: SingleTaskJob, tmp_path: Path) -> None:
    job.fail_one(SOURCE, Kill(), tmp_path)


def test_a_source_that_restarts_while_its_consumer_is_silent_drops_records(
    cluster: Cluster, job: SingleTaskJob, tmp_path: Path
) -> None:
    job.await_free_slot()
    before = job.attempts()
    (source,) = (name for name in before if SOURCE in name)
    (last,) = (name for name in before if LAST in name)
    node_of_source = job.node_of(SOURCE)

    def dropped() -> str | None:
        now = job.attempts()
        if source not in now or now[source] == before[source]:
            return f"running: {', '.join(now)}"
        producer = cluster.node(job.node_of(SOURCE))
        log = cluster.runtime.logs(producer.container)
        return None if DID_NOT_COME.search(log) else f"{producer.name} waits for its consumer"

    faults = injector(cluster, tmp_path)
    silent = faults.in_effect(Pause(), job.node_of(MIDDLE))
    with silent, faults.in_effect(Kill(), node_of_source):
        wait_until(dropped, what="records dropped", limit_s=60, clock=cluster.clock)
        assert job.dropped_by(job.node_of(SOURCE)) > 0
    job.await_checkpoint()
    after = job.attempts()
    assert after[source][0] == before[source][0] + 1
    assert after[last] == before[last]


def test_every_rule_found_its_method(cluster: Cluster, job: SingleTaskJob) -> None:
    assert job.attempts()
    texts: dict[str, str] = {}
    for node in cluster.of_service("flink"):
        if (
            node.spec.group.rules is not None
            and cluster.state(node).status == ContainerStatus.RUNNING
        ):
            rules = rules_of(cluster, node)
            assert "exception" not in "".join(rules.texts.values()).lower()
            texts |= {name: text for name, text in rules.texts.items() if "Transformed in:" in text}
    assert set(texts) == {*rule_names(LOCAL), *rule_names(SINGLE)}


def test_after_three_failures_within_a_minute_all_tasks_restart(
    cluster: Cluster, job: SingleTaskJob
) -> None:
    """Every TaskManager throws four times, so the task fails again wherever it restarts."""
    job.await_free_slot()
    before = job.attempts()
    fault = ThrowInTask(operator=MIDDLE, times=4)
    for node in cluster.of_role("flink/taskmanager"):
        fault.inject(cluster, node)

    def restarted() -> str | None:
        now = job.attempts()
        return None if all(now.get(name, was) != was for name, was in before.items()) else "no"

    wait_until(restarted, what="all tasks restarted", limit_s=180, clock=cluster.clock)
    log = cluster.runtime.logs(cluster.node("flink/jobmanager-1").container)
    assert "all tasks restart, because it failed more than 3 times" in log
