"""A fake JobManager with one running job, which takes savepoints, rescales and ends with its state
retained; a fake SQL gateway submits another job.

Both answer while the JobManager's container runs, as the REST interfaces would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.flink.rest import FlinkError, FlinkUnreachable
from streamquake.cluster.job import CurrentJob, JobSpec
from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.topologies.model import NodeGroup

JOB = "0123456789abcdef0123456789abcdef"
WIDE, SINGLE = "5ca1ab1e", "0a10ne"
"""The vertices: a source with the job's parallelism, and a committer with parallelism 1."""


def install(cluster: Cluster) -> None:
    for service, declared in cluster.topology.services.items():
        if declared.engine == "flink":
            flink = cluster.clients[service] = FakeFlink(cluster, service)
            cluster.clients[f"{service}/gateway"] = FakeGateway(flink)
            spec = JobSpec(
                name="fake", sql="INSERT INTO a SELECT * FROM b", parallelism=flink.slots
            )
            cluster.run.job = CurrentJob(service=service, id=JOB, spec=spec)


class FakeFlink:
    """Replaces FlinkRest.

    `savepoints_fail` makes savepoints fail, `slots` limits the parallelism, and a savepoint is
    completed at poll number `polls_until_done`. `retained` is whether checkpoints outlive their
    job, `unmapped` the error of a job that cannot map its state, `keeps_failing` the error with
    which its tasks fail again and again.
    """

    def __init__(self, cluster: Cluster, service: str) -> None:
        self._cluster = cluster
        self._service = service
        self.job: str | None = JOB
        self.adaptive = "adaptive" in cluster.topology.services[service].config.values()
        workers = cluster.topology.services[service].nodes.get("taskmanager", NodeGroup())
        self.slots = workers.count * (workers.slots or 1)
        self.savepoints_fail = False
        self.polls_until_done = 2
        self.wanted = {WIDE: self.slots, SINGLE: 1}
        self._savepoints: list[dict[str, Any]] = []
        self.retained, self.checkpoints = True, 3
        self.unmapped, self.keeps_failing, self.savepoint_path = "", "", ""
        self.ended: dict[str, str] = {}
        self.restored: dict[str, str] = {}

    def start(self, settings: Mapping[str, str]) -> str:
        """Start a job with these settings; returns its id. Raises FlinkError when it fails at
        once."""
        name = f"job-{len(self.ended) + 1}"
        if path := settings.get("execution.state-recovery.path"):
            self.restored[name] = path
        if self.unmapped:
            self.ended[name] = "FAILED"
            raise FlinkError(500, self.unmapped)
        self.job, self.wanted = name, {WIDE: int(settings["parallelism.default"]), SINGLE: 1}
        return name

    def get(self, path: str, **parameters: str) -> Any:
        self._check(path)
        if path == "/taskmanagers":
            return {"taskmanagers": [self._taskmanager(n) for n in range(1, self.slots + 1)]}
        if path == "/jobs/overview":
            ended = [{"jid": i, "state": s, "end-time": 1} for i, s in self.ended.items()]
            live = [{"jid": self.job, "state": "RUNNING", "end-time": -1}] if self.job else []
            return {"jobs": [{"name": "fake", **job} for job in (*ended, *live)]}
        job, slash, rest = path.removeprefix("/jobs/").partition("/")
        return self._about_job(job, slash + rest)

    def post(self, path: str, document: Mapping[str, Any]) -> Any:
        self._check(path)
        if path == f"/jobs/{self.job}/stop":
            self._end("FINISHED")
            self.savepoint_path = f"{document['targetDirectory']}/{document['formatType'].lower()}"
            return {"request-id": "stop"}
        assert path == f"/jobs/{self.job}/savepoints"
        number = len(self._savepoints) + 1
        folder = f"{document['target-directory']}/savepoint-{number}"
        self._savepoints.insert(0, {"id": number, "folder": folder, "polls": 0})
        return {"request-id": str(number)}

    def put(self, path: str, document: Mapping[str, Any]) -> Any:
        self._check(path)
        self._require_adaptive()
        self.wanted = {v: bounds["parallelism"]["upperBound"] for v, bounds in document.items()}
        return {}

    def patch(self, path: str, **parameters: str) -> Any:
        self._check(path)
        assert (path, parameters) == (f"/jobs/{self.job}", {"mode": "cancel"})
        self._end("CANCELED")
        return {}

    def _end(self, state: str) -> None:
        assert self.job is not None
        if not self.savepoints_fail or state != "FINISHED":
            self.ended[self.job], self.job = state, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def _check(self, path: str) -> None:
        node = self._cluster.of_role(f"{self._service}/jobmanager")[0]
        if self._cluster.state(node).status != ContainerStatus.RUNNING:
            raise FlinkUnreachable(f"{path}: ConnectionError")
        job = path.removeprefix("/jobs/").partition("/")[0]
        known = (self.job, *self.ended, "overview")
        if path.startswith("/jobs/") and job not in known:
            raise FlinkError(404, f"Job {job} not found")

    def _require_adaptive(self) -> None:
        if not self.adaptive:
            raise FlinkError(500, "UnsupportedOperationException: needs the adaptive scheduler")

    def _about_job(self, job: str, rest: str) -> Any:
        match rest.split("/"):
            case [""]:
                graph = [] if job in self.ended else [self._vertex(v) for v in self.wanted]
                return {"state": self.ended.get(job, "RUNNING"), "vertices": graph}
            case ["", "exceptions"]:
                causes = [cause for cause in (self.unmapped, self.keeps_failing) if cause]
                return {"exceptionHistory": {"entries": [{"stacktrace": c} for c in causes]}}
            case ["", "savepoints", "stop"]:
                failed = {"failure-cause": {"stack-trace": "java.io.IOException: no space"}}
                operation = failed if self.savepoints_fail else {"location": self.savepoint_path}
                return {"status": {"id": "COMPLETED"}, "operation": operation}
            case ["", "vertices", vertex]:
                width = min(self.wanted[vertex], self.slots)
                return {"subtasks": [self._subtask(n) for n in range(width)]}
            case ["", "resource-requirements"]:
                self._require_adaptive()
                bounds = {v: {"lowerBound": 1, "upperBound": n} for v, n in self.wanted.items()}
                return {vertex: {"parallelism": bound} for vertex, bound in bounds.items()}
            case ["", "checkpoints"]:
                history = [self._savepoint(savepoint) for savepoint in self._savepoints]
                done = [s for s in history if s["status"] == "COMPLETED"]
                latest = {"savepoint": done[0] if done else None, "completed": self._newest(job)}
                path = self.restored.get(job)
                restored = {"external_path": path} if path else None
                return {"history": history, "latest": {**latest, "restored": restored}}
        raise FlinkError(404, f"{rest} not found")

    def _vertex(self, vertex: str) -> dict[str, Any]:
        width = min(self.wanted[vertex], self.slots)
        name = "Source: input" if vertex == WIDE else "committer"
        running = 0 if self.keeps_failing else width
        tasks = {"RUNNING": running, "FINISHED": 0}
        return {"id": vertex, "name": name, "parallelism": width, "tasks": tasks}

    def _newest(self, job: str) -> dict[str, Any] | None:
        if not self.checkpoints:
            return None
        return {
            "id": self.checkpoints,
            "discarded": job in self.ended and not self.retained,
            "external_path": f"hdfs://namenode/{job}/chk-{self.checkpoints}",
        }

    def _subtask(self, number: int) -> dict[str, Any]:
        """Subtask n runs on TaskManager n + 1, if that runs."""
        node = self._cluster.node(f"{self._service}/taskmanager-{number + 1}")
        runs = self._cluster.state(node).status == ContainerStatus.RUNNING
        return {
            "subtask": number,
            "attempt": 0,
            "status": "RUNNING" if runs else "CANCELED",
            "taskmanager-id": f"id-{number + 1}",
        }

    def _taskmanager(self, ordinal: int) -> dict[str, Any]:
        host = f"{self._service}-taskmanager-{ordinal}"
        return {"id": f"id-{ordinal}", "path": f"pekko.tcp://flink@{host}:6122/user/rpc"}

    def _savepoint(self, savepoint: dict[str, Any]) -> dict[str, Any]:
        savepoint["polls"] += 1
        done = savepoint["polls"] >= self.polls_until_done
        ended = "FAILED" if self.savepoints_fail else "COMPLETED"
        recorded = {
            "id": savepoint["id"],
            "is_savepoint": True,
            "state_size": 6550 if done else 0,
            "end_to_end_duration": 669 if done else -1,
        }
        if not done:
            return {**recorded, "status": "IN_PROGRESS"}
        if self.savepoints_fail:
            return {**recorded, "status": ended, "failure_message": "java.io.IOException: no space"}
        return {**recorded, "status": ended, "external_path": savepoint["folder"]}


class FakeGateway:
    """Replaces the gateway's FlinkRest: an insert starts a job, unless `rejection` has an error."""

    def __init__(self, flink: FakeFlink) -> None:
        self._flink = flink
        self.settings: Mapping[str, str] = {}
        """The settings of the newest session."""
        self.statement = ""
        self.rejection = ""

    def get(self, path: str, **parameters: str) -> Any:
        if self.rejection:
            raise FlinkError(500, self.rejection)
        if not self.statement.startswith("INSERT"):
            return {"resultType": "PAYLOAD"}
        return {"resultType": "EOS", "jobID": self._flink.start(self.settings)}

    def post(self, path: str, document: Mapping[str, Any], within_s: float | None = None) -> Any:
        if path == "/v2/sessions":
            self.settings = document["properties"]
            return {"sessionHandle": "session"}
        self.statement = document["statement"]
        return {"operationHandle": "operation"}

    def delete(self, path: str) -> Any:
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return
