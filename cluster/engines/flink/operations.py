"""Operations on a running Flink job: savepoints, and another parallelism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streamquake.cluster.engines.engine import (
    JobRejected,
    JobUnknown,
    JobUnreachable,
    SavepointResult,
    VertexParallelism,
)
from streamquake.cluster.engines.flink.rest import (
    FlinkError,
    FlinkRest,
    FlinkUnreachable,
    jobmanager,
)
from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.topologies.errors import root_cause
from streamquake.topologies.model import Service, Topology

SCHEDULER, DEFAULT_SCHEDULER = "jobmanager.scheduler", "default"
STATES = {"COMPLETED": "completed", "FAILED": "failed"}


def savepoint_problem(topology: Topology, service: str) -> str | None:
    """Why no savepoint can be taken."""
    if topology.service_of("hdfs") is None:
        return "a savepoint needs storage that every node reaches; add a service of the engine hdfs"
    return None


def savepoint_folder(topology: Topology, service: str) -> str:
    """The service's folder for savepoints on HDFS. Raises JobRejected without one."""
    store = topology.service_of("hdfs")
    if store is None:
        raise JobRejected(savepoint_problem(topology, service))
    return f"{hdfs.uri(topology, store)}/{service}/savepoints"


def take_savepoint(cluster: LiveCluster, service: str, job: str) -> None:
    """Trigger a savepoint into the service's folder on HDFS."""
    folder = savepoint_folder(cluster.topology, service)
    with job_change(job), jobmanager(cluster, service) as rest:
        rest.post(f"/jobs/{job}/savepoints", {"target-directory": folder, "cancel-job": False})


def savepoints(cluster: LiveCluster, service: str, job: str) -> tuple[SavepointResult, ...]:
    """The savepoints that the JobManager lists; it always lists the last completed one."""
    with job_query(cluster, service, job) as rest:
        document = rest.get(f"/jobs/{job}/checkpoints")
    listed = [c for c in document["history"] if c["is_savepoint"]]
    last = document["latest"]["savepoint"]
    if last is not None and last["id"] not in {c["id"] for c in listed}:
        listed.append(last)
    return tuple(_savepoint(c) for c in sorted(listed, key=lambda c: -c["id"]))


def scheduler_of(service: Service) -> str:
    """The scheduler that a Flink service is configured with, in lower case; `default` where none
    is set."""
    return str(service.config.get(SCHEDULER, DEFAULT_SCHEDULER)).lower()


def rescale_problem(topology: Topology, service: str) -> str | None:
    """Why a job cannot be rescaled while it runs."""
    scheduler = scheduler_of(topology.services[service])
    if scheduler == "adaptive":
        return None
    return (
        f"only the adaptive scheduler can change the parallelism of a running job, and {service} "
        f"has {scheduler}; set `config: {{{SCHEDULER}: adaptive}}`"
    )


def rescale(cluster: LiveCluster, service: str, job: str, wanted: Mapping[str, int]) -> None:
    """Set the upper bound of vertices' parallelism; the scheduler uses as much as slots allow.

    `PUT /jobs/:job/resource-requirements` needs the bounds of all vertices in one request.
    """
    path = f"/jobs/{job}/resource-requirements"
    with job_change(job), jobmanager(cluster, service) as rest:
        required = rest.get(path)
        for vertex, parallelism in wanted.items():
            if vertex in required:
                required[vertex]["parallelism"]["upperBound"] = parallelism
        rest.put(path, required)


def widths(cluster: LiveCluster, service: str, job: str) -> Mapping[str, VertexParallelism]:
    """The present and the requested parallelism of each vertex."""
    with job_query(cluster, service, job) as rest:
        detail = rest.get(f"/jobs/{job}")
        required = _required(rest, job)
    return {
        vertex["id"]: VertexParallelism(
            name=vertex["name"],
            parallelism=vertex["parallelism"],
            running=vertex["tasks"]["RUNNING"],
            wanted=required.get(vertex["id"], vertex["parallelism"]),
        )
        for vertex in detail["vertices"]
    }


def _required(rest: FlinkRest, job: str) -> dict[str, int]:
    """Vertex -> the requested parallelism; empty where the scheduler takes no such requests."""
    try:
        answer = rest.get(f"/jobs/{job}/resource-requirements")
    except FlinkError:
        return {}
    return {vertex: bounds["parallelism"]["upperBound"] for vertex, bounds in answer.items()}


def _savepoint(document: Mapping[str, Any]) -> SavepointResult:
    failed = document["status"] == "FAILED"
    return SavepointResult(
        number=document["id"],
        state=STATES.get(document["status"], "in progress"),  # type: ignore[arg-type]
        path=document.get("external_path") or "",
        size_bytes=document["state_size"],
        duration_ms=document["end_to_end_duration"],
        reason=root_cause(document.get("failure_message") or "") if failed else "",
    )


@contextmanager
def job_query(cluster: LiveCluster, service: str, job: str) -> Iterator[FlinkRest]:
    """Queries about a job. Raises JobUnknown, or JobUnreachable when the JobManager does not
    answer."""
    try:
        with jobmanager(cluster, service) as rest:
            yield rest
    except FlinkUnreachable as error:
        raise JobUnreachable(str(error)) from error
    except FlinkError as error:
        if error.status == 404:
            raise JobUnknown(f"the job {job} is not known: {error}") from error
        raise JobUnreachable(str(error)) from error


@contextmanager
def job_change(job: str) -> Iterator[None]:
    """A request to change a job. Raises JobUnknown, or JobRejected when Flink did not accept it."""
    try:
        yield
    except FlinkError as error:
        if error.status == 404:
            raise JobUnknown(f"the job {job} is not known: {error}") from error
        raise JobRejected(f"the job {job}: {error}") from error
    except FlinkUnreachable as error:
        raise JobRejected(f"the job {job}: {error}") from error
