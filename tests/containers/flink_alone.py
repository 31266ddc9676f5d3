"""A Flink without other systems, and the tasks of a job of one subtask a vertex."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.engines.flink.engine import FlinkEngine
from streamquake.cluster.engines.flink.rest import jobmanager
from streamquake.cluster.job import JobSpec
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.labels import OWNER, owner_of_this_process
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.topologies.model import Topology
from tests.pace import at_pace, wait_until


@contextmanager
def flink_alone(
    runtime: DockerRuntime, name: str, nodes: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[Cluster]:
    """A Flink with these nodes and settings. Afterwards nothing of it is left."""
    topology = Topology.model_validate(
        {"name": "t", "services": {"flink": {"engine": "flink", "nodes": nodes, "config": config}}}
    )
    ensure_images(topology, runtime.images(), print)
    run_id = f"test-{name}-{os.getpid()}"
    cluster = Cluster(run_id=run_id, topology=topology, runtime=runtime, clock=SystemClock())
    try:
        start_cluster(
            cluster,
            tags={OWNER: owner_of_this_process()},
            limit_s=at_pace(180),
            show_message=print,
        )
        yield cluster
    finally:
        assert remove_cluster(runtime, run_id) == []


def running_job(cluster: Cluster, sql: str) -> str:
    """The id of a new job of one subtask a vertex, when it runs."""
    job = FlinkEngine().submit(cluster, "flink", JobSpec(name="sums", sql=sql, parallelism=1))
    wait_until(
        lambda: FlinkEngine().job_pending(cluster, "flink", job),
        what="the job runs",
        limit_s=180,
        clock=cluster.clock,
    )
    return job


def attempts(cluster: Cluster, job: str) -> Mapping[str, tuple[int, int]]:
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
