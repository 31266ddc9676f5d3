"""A JobManager in memory with one running job: it takes savepoints and rescales.

It answers while its container runs, as the REST interface would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.flink_rest import FlinkError, FlinkUnreachable
from streamquake.cluster.handles import CurrentJob
from streamquake.cluster.runtime import Status
from streamquake.topologies.model import NodeGroup

JOB = "0123456789abcdef0123456789abcdef"
WIDE, ALONE = "5ca1ab1e", "0a10ne"
"""The vertices: a source as wide as the job, and a committer that is always alone."""


def install(cluster: Cluster) -> None:
    for service, declared in cluster.topology.services.items():
        if declared.engine == "flink":
            cluster.clients[service] = FakeFlink(cluster, service)
            cluster.job = CurrentJob(service=service, id=JOB)


class FakeFlink:
    """Stands in for FlinkRest. `savepoints_fail` makes them fail, `slots` limits what a job gets,
    `looks_until_done` is how often one must look until a savepoint is completed."""

    def __init__(self, cluster: Cluster, service: str) -> None:
        self._cluster = cluster
        self._service = service
        self.job: str | None = JOB
        self.adaptive = "adaptive" in cluster.topology.services[service].config.values()
        workers = cluster.topology.services[service].nodes.get("taskmanager", NodeGroup())
        self.slots = workers.count * (workers.slots or 1)
        self.savepoints_fail = False
        self.looks_until_done = 2
        self.wanted = {WIDE: self.slots, ALONE: 1}
        self._savepoints: list[dict[str, Any]] = []

    def get(self, path: str, **parameters: str) -> Any:
        self._check(path)
        if path == "/taskmanagers":
            return {"taskmanagers": [self._taskmanager(n) for n in range(1, self.slots + 1)]}
        if path == "/jobs/overview":
            return {"jobs": [{"jid": self.job, "end-time": -1}] if self.job else []}
        return self._about_job(path.removeprefix(f"/jobs/{JOB}"))

    def post(self, path: str, document: Mapping[str, Any]) -> Any:
        self._check(path)
        assert path == f"/jobs/{JOB}/savepoints"
        number = len(self._savepoints) + 1
        folder = f"{document['target-directory']}/savepoint-{number}"
        self._savepoints.insert(0, {"id": number, "folder": folder, "looks": 0})
        return {"request-id": str(number)}

    def put(self, path: str, document: Mapping[str, Any]) -> Any:
        self._check(path)
        self._needs_adaptive()
        self.wanted = {v: bounds["parallelism"]["upperBound"] for v, bounds in document.items()}
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *what: object) -> None:
        return

    def _check(self, path: str) -> None:
        node = self._cluster.of_role(f"{self._service}/jobmanager")[0]
        if self._cluster.state(node).status != Status.RUNNING:
            raise FlinkUnreachable(f"{path}: ConnectionError")
        if path.startswith("/jobs/") and self.job is None and path != "/jobs/overview":
            raise FlinkError(404, f"Job {JOB} not found")

    def _needs_adaptive(self) -> None:
        if not self.adaptive:
            raise FlinkError(500, "UnsupportedOperationException: needs the adaptive scheduler")

    def _about_job(self, what: str) -> Any:
        match what.split("/"):
            case [""]:
                return {"vertices": [self._vertex(vertex) for vertex in self.wanted]}
            case ["", "vertices", vertex]:
                width = min(self.wanted[vertex], self.slots)
                return {"subtasks": [self._subtask(n) for n in range(width)]}
            case ["", "resource-requirements"]:
                self._needs_adaptive()
                bounds = {v: {"lowerBound": 1, "upperBound": n} for v, n in self.wanted.items()}
                return {vertex: {"parallelism": bound} for vertex, bound in bounds.items()}
            case ["", "checkpoints"]:
                history = [self._savepoint(savepoint) for savepoint in self._savepoints]
                done = [s for s in history if s["status"] == "COMPLETED"]
                return {"history": history, "latest": {"savepoint": done[0] if done else None}}
        raise FlinkError(404, f"{what} not found")

    def _vertex(self, vertex: str) -> dict[str, Any]:
        width = min(self.wanted[vertex], self.slots)
        name = "Source: input" if vertex == WIDE else "committer"
        return {"id": vertex, "name": name, "parallelism": width, "tasks": {"RUNNING": width}}

    def _subtask(self, number: int) -> dict[str, Any]:
        """Subtask n runs on TaskManager n + 1, as far as that runs."""
        node = self._cluster.node(f"{self._service}/taskmanager-{number + 1}")
        runs = self._cluster.state(node).status == Status.RUNNING
        return {"subtask": number, "attempt": 0, "status": "RUNNING" if runs else "CANCELED",
                "taskmanager-id": f"id-{number + 1}"}  # fmt: skip

    def _taskmanager(self, ordinal: int) -> dict[str, Any]:
        host = f"{self._service}-taskmanager-{ordinal}"
        return {"id": f"id-{ordinal}", "path": f"pekko.tcp://flink@{host}:6122/user/rpc"}

    def _savepoint(self, savepoint: dict[str, Any]) -> dict[str, Any]:
        savepoint["looks"] += 1
        done = savepoint["looks"] >= self.looks_until_done
        ended = "FAILED" if self.savepoints_fail else "COMPLETED"
        told = {"id": savepoint["id"], "is_savepoint": True, "state_size": 6550 if done else 0,
                "end_to_end_duration": 669 if done else -1}  # fmt: skip
        if not done:
            return {**told, "status": "IN_PROGRESS"}
        if self.savepoints_fail:
            return {**told, "status": ended, "failure_message": "java.io.IOException: no space"}
        return {**told, "status": ended, "external_path": savepoint["folder"]}
