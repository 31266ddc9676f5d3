"""Queries about one running Flink job: whether it runs completely, whether it has committed; and
its cancellation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamquake.cluster.engines.flink.plan import channels, edges, may_hold_records
from streamquake.cluster.engines.flink.rest import (
    FlinkError,
    FlinkRest,
    FlinkUnreachable,
    jobmanager,
)
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.topologies.errors import root_cause

FILE_SETTLE_MS = 4_000
"""How long after the last record a file may stay open: the jobs' file sinks close a file after 2 s
without a record, and check that once a second. A checkpoint commits only files that were closed
before it began."""
SETTLE_MS = 2_000
"""The same for a job without files: its watermarks advance every 200 ms, and the first checkpoint's
transactions are committed before the second one begins."""
CANCEL_S = 60.0
IDLE_MS_PER_S = 950.0
"""A task with at least this idle time had no records in the last seconds. The gauges follow with a
delay of 5 s."""


def pending(cluster: LiveCluster, service: str, job: str) -> str | None:
    """Why not every task of the job runs, or None when all do."""
    try:
        with jobmanager(cluster, service) as rest:
            detail = rest.get(f"/jobs/{job}")
            if detail["state"] == "RUNNING":
                return tasks_pending(detail)
            cause = last_cause(rest, job)
    except (FlinkUnreachable, FlinkError) as error:
        return str(error)
    return f"the job is {detail['state']}" + (f": {cause}" if cause else "")


def drain_pending(
    cluster: LiveCluster, service: str, job: str, since_ms: int, *, writes_files: bool
) -> str | None:
    """Why output up to a moment (epoch ms) is not committed yet, or None when it is.

    Two checkpoints that began after it must have completed without in-flight data, the later one
    after every file had time to close: an unaligned checkpoint that persisted in-flight data may
    hold records that no sink has received. Each is triggered when it is due, since the job's own
    interval may be long. A job without checkpoints commits nothing; every task of it must be idle.
    """
    settle_ms = FILE_SETTLE_MS if writes_files else SETTLE_MS
    try:
        with jobmanager(cluster, service) as rest:
            if not checkpoints_enabled(rest, job):
                return _idle_pending(rest, job, cluster.clock.epoch_ms() - since_ms)
            found = rest.get(f"/jobs/{job}/checkpoints")["history"]
            later = [each for each in found if each["trigger_timestamp"] > since_ms]
            width = _channels(rest, job) if any(c.get("persisted_data") for c in later) else 0
            completed = sorted(
                each["trigger_timestamp"] - since_ms
                for each in later
                if each["status"] == "COMPLETED"
                and not may_hold_records(each.get("persisted_data") or 0, width)
            )
            if len(completed) >= 2 and completed[-1] >= settle_ms:
                return None
            elapsed_ms = cluster.clock.epoch_ms() - since_ms
            if (not completed or elapsed_ms >= settle_ms) and _may_trigger(found, later):
                rest.post(f"/jobs/{job}/checkpoints", {"checkpointType": "CONFIGURED"})
    except (FlinkUnreachable, FlinkError) as error:
        return str(error)
    return (
        f"{len(completed)} checkpoints begun since then have completed without in-flight data; "
        "awaiting a later one"
    )


def _may_trigger(history: Iterable[Mapping[str, Any]], later: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a checkpoint may be triggered: none of the history is under way, and no later one has
    failed, because each failure counts towards those that the job tolerates."""
    under_way = any(each["status"] == "IN_PROGRESS" for each in history)
    return not under_way and all(each["status"] == "COMPLETED" for each in later)


def _channels(rest: FlinkRest, job: str) -> int:
    plan = rest.get(f"/jobs/{job}/plan")["plan"]
    return channels({node["id"]: int(node["parallelism"]) for node in plan["nodes"]}, edges(plan))


def cancel(cluster: LiveCluster, service: str, job: str) -> None:
    """Cancel a job; does nothing if it has ended or is unknown. Raises FlinkUnreachable."""
    try:
        with jobmanager(cluster, service) as rest:
            rest.patch(f"/jobs/{job}", mode="cancel")
    except FlinkError as error:
        if error.status not in (404, 409):
            raise


def cancel_all(cluster: LiveCluster, service: str) -> None:
    """Cancel every job that has not ended, and wait for the end of all: a job has ended when its
    last task has. Raises FlinkUnreachable, FlinkError, NotReadyInTime."""
    for job in live_jobs(cluster, service):
        cancel(cluster, service, job)

    def pending() -> str | None:
        left = live_jobs(cluster, service)
        return f"not ended: {', '.join(left)}" if left else None

    wait_until(pending, what="jobs cancelled", limit_s=CANCEL_S, clock=cluster.clock, every_s=0.25)


def live_jobs(cluster: LiveCluster, service: str) -> list[str]:
    """The ids of the jobs that have not ended. Raises FlinkUnreachable, FlinkError."""
    with jobmanager(cluster, service) as rest:
        found = rest.get("/jobs/overview")["jobs"]
    return [str(job["jid"]) for job in found if job["end-time"] < 0]


def checkpoints_enabled(rest: FlinkRest, job: str) -> bool:
    """Whether the job has checkpoints enabled, whatever the cluster's configuration file sets."""
    try:
        return int(rest.get(f"/jobs/{job}/checkpoints/config")["interval"]) < 2**62
    except FlinkError as error:
        if error.status == 404 and "not enabled" in str(error).lower():
            return False
        raise


def last_cause(rest: FlinkRest, job: str) -> str:
    """The root cause of the job's latest failure, or nothing."""
    entries = rest.get(f"/jobs/{job}/exceptions", maxExceptions="1")["exceptionHistory"]["entries"]
    return root_cause(entries[0]["stacktrace"]) if entries else ""


def tasks_pending(detail: Mapping[str, Any]) -> str | None:
    """Why not every task runs, from an answer of `GET /jobs/:job`, or None when all do."""
    for vertex in detail["vertices"]:
        tasks = vertex["tasks"]
        done = tasks["RUNNING"] + tasks["FINISHED"]
        if done < vertex["parallelism"]:
            states = ", ".join(f"{n} {state}" for state, n in tasks.items() if n)
            return f"{done} of {vertex['parallelism']} tasks of {vertex['name']} run ({states})"
    return None


def _idle_pending(rest: FlinkRest, job: str, elapsed_ms: int) -> str | None:
    if elapsed_ms < 2 * FILE_SETTLE_MS:
        return "the job has no checkpoints; its idleness is not settled yet"
    for vertex in rest.get(f"/jobs/{job}")["vertices"]:
        path = f"/jobs/{job}/vertices/{vertex['id']}/subtasks/metrics"
        found = rest.get(path, get="idleTimeMsPerSecond", agg="min")
        if not found or float(found[0]["min"]) < IDLE_MS_PER_S:
            return f"tasks of {vertex['name']} are still busy"
    return None
