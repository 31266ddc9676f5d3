"""Follow a query: record the events of its driver, through every restart of the driver.

A driver that runs and does not answer proves nothing about its query. A driver that has ended has
failed, and one with another life was restarted: it continues after the last committed batch.
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

AWAY_S = 0.2
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
    requested = driver(cluster, service)

    over = threading.Event()

    def list_files() -> None:
        while not (over.is_set() or stop.wait(LIST_S)):
            follower.poll_files()

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="files") as pool:
        listing = pool.submit(list_files)
        try:
            while not (stop.is_set() or listing.done()):
                try:
                    follower.take(requested.news(follower.cursor))
                except DriverUnreachable as away:
                    if away.gone:
                        follower.gone(str(away))
                    stop.wait(AWAY_S)
        finally:
            over.set()
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
        """How many entries of the driver's life have been taken."""
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

    def take(self, news: DriverEvents) -> None:
        """Record new events; those of another life of the driver are requested from its
        beginning."""
        if news.life != self._life:
            if self._life:
                self.gone("the driver was started again")
                self._restart(news.life)
            self._life, began = news.life, self.cursor
            self.cursor = 0
            if began:
                return
        for entry in news.entries:
            self._see(entry)
        self.cursor += len(news.entries)

    def poll_files(self) -> None:
        """List the state on HDFS, if a batch was committed since the last poll; may be called in a
        thread of its own."""
        self._report(self._files.poll())

    def gone(self, why: str) -> None:
        """The driver's process has ended; recorded once in each of its lives."""
        if self._life and not self._failed:
            self._fail(why, own=False)

    def _restart(self, started_ms: int) -> None:
        self._failed = False
        self._restarts += 1
        value = {"job": self._job, "restart": self._restarts, "restarting_ms": started_ms}
        self._report([Observation(action=Action.JOB_RESTARTING, value=value)])

    def _see(self, entry: Entry) -> None:
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
        self._report(self._batches.lost(cause, own=own))
        self._tasks.stopped()

    def _sample(self, entry: Entry) -> None:
        made = entry["progress"]
        for phase, spent_ms in made["durationMs"].items():
            self._measure("batch_ms", phase, spent_ms)
        self._measure("batch_rows", self._job, made["numInputRows"])
        self._measure("checkpoint_duration_ms", self._job, made["durationMs"]["triggerExecution"])

    def _report(self, observations: Iterable[Observation]) -> None:
        for observation in observations:
            if observation.action == Action.CHECKPOINT_COMPLETED:
                self._files.await_listing(observation.value["checkpoint"])
            self._emit(observation.note(self._cluster.clock.now_ns(), self._service))
