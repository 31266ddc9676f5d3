"""Follow a Flink job: poll its REST interface and record changes, until stopped.

An unreachable JobManager proves nothing about the job: no event is recorded until it answers again.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.engines.flink.checkpoints import (
    CheckpointWatch,
    acknowledged,
    phases,
    subtasks_of,
)
from streamquake.cluster.engines.flink.files import CheckpointFiles
from streamquake.cluster.engines.flink.job import checkpoints_enabled
from streamquake.cluster.engines.flink.metrics import MetricsProbe
from streamquake.cluster.engines.flink.plan import edges, regions
from streamquake.cluster.engines.flink.rest import (
    FlinkError,
    FlinkRest,
    FlinkUnreachable,
    jobmanager,
)
from streamquake.cluster.engines.flink.states import LOST, StateWatch
from streamquake.cluster.engines.flink.tasks import NodeNames, TaskWatch
from streamquake.cluster.engines.observation import Observation
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.reports.record.event import Action

CHECKPOINTS_S, JOB_S, TASKS_S, METRICS_S = 0.03, 0.1, 0.3, 1.0
UNREACHABLE_S = 0.5


def follow(
    cluster: LiveCluster,
    service: str,
    job: str,
    record_event: RecordEvent,
    measure: RecordSample,
    stop: threading.Event,
) -> None:
    """Observe a job until `stop` or its end. Raises nothing for an unreachable JobManager.

    Checkpoints are polled in a separate thread and connection: faults wait for steps of checkpoints
    and must not wait for polls of tasks and metrics, which take many requests.
    """
    with (
        jobmanager(cluster, service) as rest,
        jobmanager(cluster, service) as checkpoint_rest,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints") as pool,
    ):
        follower = JobFollower(cluster, service, job, rest, record_event, measure, checkpoint_rest)
        ended = threading.Event()

        def poll_until_stopped(poll: Callable[[], None], every_s: float) -> None:
            while not (stop.is_set() or ended.is_set() or follower.ended):
                try:
                    poll()
                    stop.wait(every_s)
                except FlinkUnreachable:
                    stop.wait(UNREACHABLE_S)

        checkpoints = pool.submit(poll_until_stopped, follower.poll_checkpoints, CHECKPOINTS_S)
        checkpoints.add_done_callback(lambda _: ended.set())
        try:
            poll_until_stopped(follower.poll_job, JOB_S)
        finally:
            ended.set()
        checkpoints.result()
        if follower.ended:
            # Checkpoints that completed with the job's end, such as the savepoint of a stop.
            with suppress(FlinkUnreachable):
                follower.poll_checkpoints()


class JobFollower:
    """Polls one job; each poll makes the requests that are due."""

    def __init__(
        self,
        cluster: LiveCluster,
        service: str,
        job: str,
        rest: FlinkRest,
        record_event: RecordEvent,
        measure: RecordSample,
        checkpoint_rest: FlinkRest | None = None,
    ) -> None:
        self._clock = cluster.clock
        self._service = service
        self._path = f"/jobs/{job}"
        self._job = job
        self._rest = rest
        self._checkpoint_rest = checkpoint_rest or rest
        self._emit = record_event
        self._measure = measure
        hosts = {node.spec.host: node.name for node in cluster.of_service(service)}
        names = NodeNames(hosts, lambda: rest.get("/taskmanagers")["taskmanagers"])
        self._checkpoints = CheckpointWatch(job)
        self._tasks = TaskWatch(job, names)
        self._states = StateWatch(job)
        self._metrics = MetricsProbe(rest, job, measure, cluster.clock)
        self._files = CheckpointFiles(cluster, job)
        self._due_ns: dict[float, int] = {}
        self._vertices: list[str] = []
        self._has_checkpoints = False
        self._submission_recorded = False

    @property
    def ended(self) -> bool:
        return self._states.ended

    def poll(self) -> None:
        """One poll of everything. Raises FlinkUnreachable."""
        self.poll_job()
        self.poll_checkpoints()

    def poll_job(self) -> None:
        """Make the due requests about the job and its tasks and record changes. Raises
        FlinkUnreachable."""
        try:
            if not self._submission_recorded:
                detail = self._rest.get(self._path)
                if detail["state"] == "INITIALIZING":
                    return  # its graph is still being built
                self._report([self._submitted(detail)])
                self._submission_recorded = True
            if self._is_due(TASKS_S):
                self._poll_tasks()
        except FlinkError as error:
            self._lost_or_not_ready(error)

    def _poll_tasks(self) -> None:
        detail = self._rest.get(self._path)
        self._report(self._states.failures(self._rest.get(f"{self._path}/exceptions")))
        self._report(self._states.poll(detail))
        answers = [self._rest.get(f"{self._path}/vertices/{v}") for v in self._vertices]
        self._report(self._tasks.poll(answers))
        self._report(self._files.poll())
        if self._is_due(METRICS_S):
            self._metrics.poll(detail)
            self._metrics.poll_subtasks(answers)

    def poll_checkpoints(self) -> None:
        """Record new checkpoint events, after the job's submission was recorded. Raises
        FlinkUnreachable."""
        if not (self._submission_recorded and self._has_checkpoints):
            return
        try:
            found = self._checkpoint_rest.get(f"{self._path}/checkpoints")
        except FlinkError:
            return  # the poll of the job records a lost job
        for observation in self._checkpoints.poll(found):
            observed_ns = self._clock.now_ns()
            if observation.action in (Action.CHECKPOINT_COMPLETED, Action.CHECKPOINT_FAILED):
                observation = self._with_details(observation)
            if observation.action == Action.CHECKPOINT_COMPLETED:
                self._measure("checkpoint_duration_ms", self._job, observation.value["duration_ms"])
                self._files.await_listing(observation.value)
            self._emit(observation.draft(observed_ns, self._service))

    def _with_details(self, ended: Observation) -> Observation:
        """The end of a checkpoint, with the times of its acknowledgements and its phases."""
        details = f"{self._path}/checkpoints/details/{ended.value['checkpoint']}/subtasks"
        try:
            found = {v: self._checkpoint_rest.get(f"{details}/{v}") for v in self._vertices}
        except (FlinkError, FlinkUnreachable):
            return ended  # only the details of the checkpoint are unknown
        more = phases(found) if ended.action == Action.CHECKPOINT_COMPLETED else {}
        known = {**acknowledged(found), **more, "subtasks": subtasks_of(found)}
        return dataclasses.replace(ended, value={**ended.value, **known})

    def _submitted(self, detail: Mapping[str, Any]) -> Observation:
        plan: dict[str, Any] = {"nodes": []}
        if detail["vertices"]:  # a job that failed during its setup has no graph
            plan = self._rest.get(f"{self._path}/plan")["plan"]
            self._has_checkpoints = checkpoints_enabled(self._rest, self._job)
        config: dict[str, Any] = {}
        if self._has_checkpoints:
            config = self._rest.get(f"{self._path}/checkpoints/config")
        vertices = [
            {"id": v["id"], "name": v["name"], "parallelism": v["parallelism"]}
            for v in detail["vertices"]
        ]
        self._vertices = [vertex["id"] for vertex in vertices]
        return Observation(
            action=Action.JOB_SUBMITTED,
            value={
                "job": self._job,
                "name": detail["name"],
                "vertices": vertices,
                "edges": edges(plan),
                "config": config,
                "regions": regions(plan),
                "submitted_ms": detail["start-time"],
            },
        )

    def _lost_or_not_ready(self, error: FlinkError) -> None:
        """A job that existed and is no longer known is lost; other errors are ignored."""
        if error.status == 404 and self._vertices and self._is_unknown():
            self._report(self._states.end(LOST))

    def _is_unknown(self) -> bool:
        return all(job["id"] != self._job for job in self._rest.get("/jobs")["jobs"])

    def _report(self, observations: Iterable[Observation]) -> None:
        for observation in observations:
            self._emit(observation.draft(self._clock.now_ns(), self._service))

    def _is_due(self, every_s: float) -> bool:
        now_ns = self._clock.now_ns()
        if now_ns < self._due_ns.get(every_s, 0):
            return False
        self._due_ns[every_s] = now_ns + int(every_s * 1e9)
        return True
