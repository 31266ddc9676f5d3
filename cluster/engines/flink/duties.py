"""The duties of Flink nodes: which JobManager leads, which TaskManager runs a subtask."""

from __future__ import annotations

import re

from streamquake.cluster.engines.engine import NodeDuty
from streamquake.cluster.engines.flink import ha
from streamquake.cluster.engines.flink.rest import (
    FlinkError,
    FlinkRest,
    FlinkUnreachable,
    jobmanager,
)
from streamquake.cluster.engines.flink.tasks import NodeNames
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until

ACTIVE = NodeDuty(role="jobmanager", usage="active jobmanager", pattern="active jobmanager")
STANDBY = NodeDuty(
    role="jobmanager", usage="standby jobmanager", pattern="standby jobmanager", among=2
)
SUBTASK = NodeDuty(
    role="taskmanager",
    usage="node running subtask N of NAME",
    pattern=r"node running subtask (\d+) of (.+)",
)
"""Subtasks are counted from 0, as Flink does; NAME is a part of the vertex's name."""
ANSWER_S = 3.0
"""How long a request is repeated while the JobManager answers with an error, such as a cancelled
access to the execution graph. After that the injection fails."""


def on_duty(cluster: LiveCluster, service: str, duty: str) -> tuple[str, ...]:
    """The nodes with this duty now. Raises LookupError with the reason when there is none."""
    if duty == ACTIVE.usage:
        return (ha.leader(cluster, service).name,)
    if duty == STANDBY.usage:
        return tuple(node.name for node in ha.standbys(cluster, service))
    if (subtask := re.fullmatch(SUBTASK.pattern, duty)) is None:
        raise LookupError(f'{service} knows no "{duty}"')
    found: list[str] = []

    def pending() -> str | None:
        try:
            with jobmanager(cluster, service) as rest:
                found.append(_running(cluster, service, rest, int(subtask[1]), subtask[2]))
        except (FlinkUnreachable, FlinkError) as error:
            return str(error)
        return None

    try:
        wait_until(pending, what=duty, limit_s=ANSWER_S, clock=cluster.clock)
    except NotReadyInTime as error:
        raise LookupError(f'"the {duty}" cannot be found now: {error.reason}') from error
    return tuple(found)


def current_job(cluster: LiveCluster, service: str, rest: FlinkRest) -> str:
    """The job of the run; on a manually started cluster the only job that has not ended."""
    if cluster.run.job is not None and cluster.run.job.service == service:
        return cluster.run.job.id
    return only_job(service, rest)


def only_job(service: str, rest: FlinkRest, named: str | None = None) -> str:
    """The one job that has not ended, or the one with this name or id. Raises LookupError for none
    or several."""
    live = [job for job in rest.get("/jobs/overview")["jobs"] if job["end-time"] < 0]
    found = [job["jid"] for job in live if named in (None, job["jid"], job["name"])]
    if len(found) != 1:
        called = "" if named is None else f' called "{named}"'
        names = ", ".join(sorted(f"{job['name']} ({job['jid']})" for job in live)) or "none"
        raise LookupError(
            f"expected one running job of {service}{called}, got {len(found)}; running: {names}"
        )
    return str(found[0])


def _running(cluster: LiveCluster, service: str, rest: FlinkRest, subtask: int, part: str) -> str:
    """The node whose TaskManager runs a subtask of the first vertex whose name matches."""
    job = current_job(cluster, service, rest)
    vertices = rest.get(f"/jobs/{job}")["vertices"]
    names = {vertex["name"]: vertex["id"] for vertex in vertices}
    chosen = next((i for name, i in names.items() if part.lower() in name.lower()), None)
    if chosen is None:
        raise LookupError(f'no vertex of the job has "{part}" in its name: {"; ".join(names)}')
    tasks = rest.get(f"/jobs/{job}/vertices/{chosen}")["subtasks"]
    if subtask >= len(tasks):
        raise LookupError(f'"{part}" has the subtasks 0 to {len(tasks) - 1}, not {subtask}')
    hosts = {node.spec.host: node.name for node in cluster.of_service(service)}
    place = NodeNames(hosts, lambda: rest.get("/taskmanagers")["taskmanagers"])
    node = place.node(tasks[subtask]["taskmanager-id"])
    if tasks[subtask]["status"] != "RUNNING" or node not in cluster.nodes:
        raise LookupError(f'subtask {subtask} of "{part}" is {tasks[subtask]["status"]}')
    return node
