"""End a Flink job with its state retained, and submit one from such state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from streamquake.cluster.engines.engine import JobRejected, JobStart, JobUnreachable, RetainedState
from streamquake.cluster.engines.flink.config import job_settings
from streamquake.cluster.engines.flink.job import last_cause, tasks_pending
from streamquake.cluster.engines.flink.operations import job_change, job_query, savepoint_folder
from streamquake.cluster.engines.flink.rest import jobmanager
from streamquake.cluster.engines.flink.states import ENDED
from streamquake.cluster.engines.flink.submit import submit
from streamquake.cluster.job import JobSpec
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.topologies.errors import root_cause
from streamquake.topologies.model import Topology

PATH, CLAIM = "execution.state-recovery.path", "execution.state-recovery.claim-mode"
RETENTION = "execution.checkpointing.externalized-checkpoint-retention"
RETAINED = "RETAIN_ON_CANCELLATION"
FORMATS: Mapping[RetainedState, str] = {"savepoint": "NATIVE", "canonical": "CANONICAL"}
END_S = 60.0
"""A cancelled task finishes its record first, and is not interrupted for half a minute."""
STOP_S = 120.0
"""A savepoint is always aligned, even if checkpoints are not: its barriers wait behind all
records."""


def restart_problem(topology: Topology, service: str) -> str | None:
    """Why no job can be restarted from its state."""
    if topology.service_of("hdfs") is None:
        return (
            "state that outlives its job needs storage that every node reaches; add a service of "
            "the engine hdfs"
        )
    return None


def retained_state_problem(
    topology: Topology, service: str, config: Mapping[str, Any], keeping: RetainedState
) -> str | None:
    """Why a job with these settings retains no such state: Flink removes a cancelled job's
    checkpoints unless configured to keep them."""
    settings = job_settings(topology, service, config)
    if keeping != "checkpoint" or settings.get(RETENTION, "").upper() == RETAINED:
        return None
    return (
        "a cancelled job's checkpoints are removed by default; set "
        f"`{RETENTION}: {RETAINED}` in `job: config`, or restart from a savepoint"
    )


def end_and_retain_state(
    cluster: LiveCluster, service: str, job: str, keeping: RetainedState
) -> str:
    """Cancel the job, or stop it with a savepoint; returns the path of the retained state."""
    if keeping == "checkpoint":
        return _cancelled(cluster, service, job)
    return _stopped(cluster, service, job, FORMATS[keeping])


def resume(cluster: LiveCluster, service: str, job: JobSpec, path: str, claim: bool) -> str:
    """Submit a job from a path. Flink's client waits until the JobManager has mapped the state to
    the job. It reports a job as rejected when that fails; the JobManager lists that job as failed.
    """
    before = _jobs(cluster, service)
    given = {PATH: path, CLAIM: "CLAIM" if claim else "NO_CLAIM"}
    try:
        return submit(cluster, service, replace(job, config={**job.config, **given}))
    except JobRejected:
        after = _jobs(cluster, service)
        failed = [i for i, state in after.items() if i not in before and state == "FAILED"]
        if len(failed) != 1:
            raise
        return failed[0]


def start_of(cluster: LiveCluster, service: str, job: str) -> JobStart:
    """The progress of a job, and the state that it reports to be restored from."""
    with job_query(cluster, service, job) as rest:
        detail = rest.get(f"/jobs/{job}")
        state = detail["state"]
        width = max((vertex["parallelism"] for vertex in detail["vertices"]), default=0)
        if state in ENDED:
            reason = last_cause(rest, job) or f"the job is {state}"
            return JobStart(state="failed", parallelism=width, reason=reason)
        waits = tasks_pending(detail) if state == "RUNNING" else f"the job is {state}"
        if waits is not None:
            cause = last_cause(rest, job)
            reason = f"{waits}: {cause}" if cause else waits
            return JobStart(state="coming", parallelism=width, reason=reason)
        restored = rest.get(f"/jobs/{job}/checkpoints")["latest"]["restored"] or {}
    return JobStart(
        state="running", parallelism=width, restored_from=str(restored.get("external_path") or "")
    )


def _cancelled(cluster: LiveCluster, service: str, job: str) -> str:
    """Cancel; returns the path of the checkpoint that is the newest when the job has ended."""
    if not _newest(cluster, service, job):
        raise JobRejected(
            f"the job {job} has completed no checkpoint that it could be restored from"
        )
    with job_change(job), jobmanager(cluster, service) as rest:
        rest.patch(f"/jobs/{job}", mode="cancel")
    _await_end(cluster, service, job)
    newest = _newest(cluster, service, job)
    if newest.get("discarded"):
        raise JobRejected(f"the job {job} removed its checkpoints; set {RETENTION}: {RETAINED}")
    return str(newest["external_path"])


def _stopped(cluster: LiveCluster, service: str, job: str, savepoint_format: str) -> str:
    """Stop with a savepoint; returns its path when the job has ended."""
    folder = savepoint_folder(cluster.topology, service)
    request = {"targetDirectory": folder, "drain": False, "formatType": savepoint_format}
    with job_change(job), jobmanager(cluster, service) as rest:
        number = rest.post(f"/jobs/{job}/stop", request)["request-id"]
    found: dict[str, Any] = {}

    def pending() -> str | None:
        with job_query(cluster, service, job) as rest:
            answer = rest.get(f"/jobs/{job}/savepoints/{number}")
        found.update(answer.get("operation") or {})
        return None if answer["status"]["id"] == "COMPLETED" else "the savepoint is being taken"

    _until(pending, cluster, f"the job {job} stopped with a savepoint", STOP_S)
    if "location" not in found:
        why = root_cause(str(found.get("failure-cause", {}).get("stack-trace", "")))
        raise JobRejected(
            f"the job {job} did not stop with a savepoint: {why or 'no reason given'}"
        )
    _await_end(cluster, service, job)
    return str(found["location"])


def _await_end(cluster: LiveCluster, service: str, job: str) -> None:
    """A job has ended when its last task has. Raises NotReadyInTime."""

    def pending() -> str | None:
        with job_query(cluster, service, job) as rest:
            state = rest.get(f"/jobs/{job}")["state"]
        return None if state in ENDED else f"the job is {state}"

    _until(pending, cluster, f"the job {job} ended", END_S)


def _until(
    pending: Callable[[], str | None], cluster: LiveCluster, what: str, limit_s: float
) -> None:
    """Wait, also while the JobManager does not answer."""

    def pending_or_unreachable() -> str | None:
        try:
            return pending()
        except JobUnreachable as error:
            return str(error)

    wait_until(pending_or_unreachable, what=what, limit_s=limit_s, clock=cluster.clock)


def _newest(cluster: LiveCluster, service: str, job: str) -> Mapping[str, Any]:
    """The newest completed checkpoint that is no savepoint; empty when there is none."""
    with job_change(job), jobmanager(cluster, service) as rest:
        document = rest.get(f"/jobs/{job}/checkpoints")
    return document["latest"].get("completed") or {}


def _jobs(cluster: LiveCluster, service: str) -> dict[str, str]:
    """Every job that the JobManager remembers -> its state."""
    with job_change("to be submitted"), jobmanager(cluster, service) as rest:
        return {job["jid"]: job["state"] for job in rest.get("/jobs/overview")["jobs"]}
