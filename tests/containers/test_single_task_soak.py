"""Two hundred failovers of single tasks, one after the other, half of them under back-pressure: no
other task ever restarts, and when the job ends no network buffer is missing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.flink.rest import jobmanager
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.power_off import PowerOff
from streamquake.faults.catalogue.throw_in_task import ThrowInTask
from tests.containers.single_task_job import (
    LAST,
    MIDDLE,
    SOURCE,
    SingleTaskJob,
    single_task_cluster,
    start_job,
)
from tests.pace import wait_until

pytestmark = [pytest.mark.container, pytest.mark.nightly]

FAILOVERS = 100
OPERATORS = {SOURCE: "Calc[2]", MIDDLE: MIDDLE, LAST: "OverAggregate[7]"}
"""Vertex -> the operator in it that throws; a source receives no record."""
BUFFERS = [f"Status.Shuffle.Netty.{kind}MemorySegments" for kind in ("Available", "Total")]


@pytest.fixture
def cluster(docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    """A task may fail often, and a machine without power is noticed after six seconds."""
    config = {
        "env.java.opts.jobmanager": "-Dsingle-task.restarts-per-minute=1000",
        "heartbeat.timeout": "6 s",
    }
    with single_task_cluster(docker_runtime, "single-task-soak", **config) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("rows_per_s", "level"),
    [
        pytest.param(500, "ok", id="with-load"),
        pytest.param(10_000_000, "high", id="with-back-pressure"),
    ],
)
def test_after_a_hundred_failovers_no_other_task_restarted_and_no_buffer_is_missing(
    cluster: Cluster, rows_per_s: int, level: str, tmp_path: Path
) -> None:
    job = start_job(cluster, rows_per_s)
    wait_until(
        lambda: other_back_pressure(job, level),
        what="back-pressure of the source",
        limit_s=60,
        clock=cluster.clock,
    )
    ways = itertools.cycle(itertools.product(("throw", "kill", "throw", "power off"), OPERATORS))
    for number, (way, vertex) in enumerate(itertools.islice(ways, FAILOVERS), start=1):
        print(f"{number}: {way} in {vertex}")
        fail(job, way, vertex, tmp_path)

    with jobmanager(cluster, "flink") as rest:
        rest.patch(f"/jobs/{job.id}", mode="cancel")
    wait_until(
        lambda: missing_buffers(cluster), what="all buffers", limit_s=60, clock=cluster.clock
    )


def fail(job: SingleTaskJob, way: str, vertex: str, folder: Path) -> None:
    match way:
        case "throw":
            job.fail_one(vertex, ThrowInTask(operator=OPERATORS[vertex]), folder)
        case "kill":
            job.fail_one(vertex, Kill(), folder)
        case _:
            job.fail_one(vertex, PowerOff(), folder)


def other_back_pressure(job: SingleTaskJob, level: str) -> str | None:
    """The source's level of back-pressure, where it is another one: ok, low or high."""
    with jobmanager(job.cluster, "flink") as rest:
        (source,) = (
            each for each in rest.get(f"/jobs/{job.id}")["vertices"] if SOURCE in each["name"]
        )
        answer = rest.get(f"/jobs/{job.id}/vertices/{source['id']}/backpressure")
    seen = answer.get("backpressureLevel", "unknown")
    return None if seen == level else f"it is {seen}"


def missing_buffers(cluster: Cluster) -> str | None:
    """The TaskManagers whose pool of network buffers lacks some; None where none does."""
    with jobmanager(cluster, "flink") as rest:
        pools = {}
        for each in rest.get("/taskmanagers")["taskmanagers"]:
            path = f"/taskmanagers/{each['id']}/metrics"
            pools[each["id"]] = {
                metric["id"]: metric["value"] for metric in rest.get(path, get=",".join(BUFFERS))
            }
    lacking = [f"{name}: {pool}" for name, pool in pools.items() if len(set(pool.values())) != 1]
    return "; ".join(lacking) or (None if len(pools) == 4 else f"{len(pools)} TaskManagers")
