"""Follow a query: record the events of its driver, across restarts of the driver.

An unreachable driver proves nothing about its query while it runs. A driver that has ended has
failed, and one with another `life` was restarted: it continues after the last committed batch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.engines.observation import Observation
from streamquake.cluster.engines.spark.batches import BatchWatch
from streamquake.cluster.engines.spark.driver_listener import (
    DriverEvents,
    DriverUnreachable,
    Entry,
    driver,
)
from streamquake.cluster.engines.spark.files import StateFiles
from streamquake.cluster.engines.spark.job import root_cause
from streamquake.cluster.engines.spark.tasks import SparkTaskWatch
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.reports.record.event import Action

UNREACHABLE_S = 0.2
LIST_S = 0.5
"""How often the follower checks whether files are to be listed, seconds."""


def follow(
    cluster: LiveCluster,
    service: str,
    job: str,
    record_event: RecordEvent,
    measure: RecordSample,
    stop: threading.Event,
) -> None:
    """Observe a query until `stop`. Raises nothing for an unreachable driver."""
    follower = QueryFollower(cluster, service, job, record_event, measure)
    spark_driver = driver(cluster, service)
    ended = threading.Event()

    def list_files() -> None:
        while not (ended.is_set() or stop.wait(LIST_S)):
            follower.poll_files()

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="files") as pool:
        listing = pool.submit(list_files)
        try:
            while not (stop.is_set() or listing.done()):
                try:
                    follower.record(spark_driver.events(follower.cursor))
                except DriverUnreachable as error:
                    if error.not_listening:
                        follower.record_driver_end(str(error))
                    stop.wait(UNREACHABLE_S)
        finally:
            ended.set()
        listing.result()


class QueryFollower:
    """Records the events that a driver reports of one query."""

    def __init__(
        self,
        cluster: LiveCluster,
        service: str,
        job: str,
        record_event: RecordEvent,
        measure: RecordSample,
    ) -> None:
        self.cursor = 0
        """The number of recorded entries of the present driver process."""
        self._cluster = cluster
        self._service = service
        self._job = job
        self._emit = record_event
        self._measure = measure
        hosts = {node.spec.host: node.name for node in cluster.of_service(service)}
        self._batches = BatchWatch(job)
        self._tasks = SparkTaskWatch(job, hosts)
        self._files = StateFiles(cluster, job)
        self._life = 0
        self._restarts = 0
        self._failed = False
        self._committed = -1

    def record(self, events: DriverEvents) -> None:
        """Record new events. After a restart of the driver, its events are requested from the first
        one."""
        if events.life != self._life:
            if self._life:
                self.record_driver_end("the driver was started again")
                self._restart(events.life)
            self._life, began = events.life, self.cursor
            self.cursor = 0
            if began:
                return
        for entry in events.entries:
            self._record_entry(entry)
        self.cursor += len(events.entries)

    def poll_files(self) -> None:
        """List the state on HDFS, if a batch was committed since the last poll; may be called in
        another thread."""
        self._report(self._files.poll())

    def record_driver_end(self, reason: str) -> None:
        """Record that the driver's process has ended, once per process."""
        if self._life and not self._failed:
            self._fail(reason, own=False)

    def _restart(self, started_ms: int) -> None:
        self._failed = False
        self._restarts += 1
        value = {"job": self._job, "restart": self._restarts, "restarting_ms": started_ms}
        self._report([Observation(action=Action.JOB_RESTARTING, value=value)])

    def _record_entry(self, entry: Entry) -> None:
        what = entry["what"]
        if what == "query started":
            self._report([self._started(entry)])
        elif what == "query ended" and entry["reason"]:
            self._fail(root_cause(str(entry["reason"])), own=True)
        elif what == "commit written":
            self._committed = int(entry["batch"])
        elif what == "progress":
            self._sample(entry)
        self._report(self._batches.poll(entry))
        self._report(self._tasks.poll(entry))

    def _started(self, entry: Entry) -> Observation:
        if not self._restarts:
            value = {
                "job": self._job,
                "name": entry.get("name"),
                "vertices": [],
                "edges": [],
                "config": {},
                "submitted_ms": entry["ms"],
            }
            return Observation(action=Action.JOB_SUBMITTED, value=value)
        value = {"job": self._job, "checkpoint": self._committed, "restored_at_ms": entry["ms"]}
        return Observation(action=Action.JOB_RESTORED, value=value)

    def _fail(self, cause: str, *, own: bool) -> None:
        self._failed = True
        value = {"job": self._job, "cause": cause, "own": own}
        self._report([Observation(action=Action.JOB_FAILING, value=value, error=cause)])
        self._report(self._batches.fail_running(cause, own=own))
        self._tasks.stop()

    def _sample(self, entry: Entry) -> None:
        progress = entry["progress"]
        for phase, spent_ms in progress["durationMs"].items():
            self._measure("batch_ms", phase, spent_ms)
        self._measure("batch_rows", self._job, progress["numInputRows"])
        self._measure(
            "checkpoint_duration_ms", self._job, progress["durationMs"]["triggerExecution"]
        )

    def _report(self, observations: Iterable[Observation]) -> None:
        for observation in observations:
            if observation.action == Action.CHECKPOINT_COMPLETED:
                self._files.await_listing(observation.value["checkpoint"])
            self._emit(observation.draft(self._cluster.clock.now_ns(), self._service))
