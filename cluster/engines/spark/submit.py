"""Submit a PySpark program: its text and settings are put into the waiting driver's container.

A driver that ends is restarted with the same files, so that its program continues from its
checkpoint. A program that fails before its query started is rejected, with its log tail.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamquake.cluster.engines.engine import JobRejected
from streamquake.cluster.engines.spark.config import program_file
from streamquake.cluster.engines.spark.driver_listener import DriverUnreachable, driver, driver_of
from streamquake.cluster.job import JobSpec
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.log_tail import log_tail
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until
from streamquake.topologies.named_files import LIBRARY

JOB = "/opt/spark/job"
SUBMIT_S = 180.0
"""Enough to start Python and the JVM and to plan the query on a busy machine."""


def submit(cluster: LiveCluster, service: str, job: JobSpec) -> str:
    """Submit a program to the driver; returns the id of its query when the query has started.
    Raises JobRejected with the program's log tail."""
    if job.pyspark is None:
        raise JobRejected(f"{service} runs PySpark programs, and {job.name} is none")
    node = driver_of(cluster, service)
    started_at = cluster.state(node).started_at
    modules = {path.name: path.read_text("utf-8") for path in sorted(LIBRARY.glob("*.py"))}
    modules |= {f"{name}.py": text for name, text in job.modules.items()}
    arguments = "".join(f"{arg}\n" for arg in job.args)
    jars = job.jar_contents()
    files: dict[str, str | bytes] = {"job.py": job.pyspark, "arguments": arguments}
    files |= {**modules, **jars}
    cluster.runtime.put(node.container, {f"{JOB}/{name}": each for name, each in files.items()})
    own = {**job.config, "spark.submit.pyFiles": _paths(modules)}
    if jars:
        configured = str(job.config.get("spark.jars", ""))
        own["spark.jars"] = ",".join(filter(None, (configured, _paths(jars))))
    conf = program_file(cluster.topology, service, node.spec, job.name, job.parallelism, own)
    # The driver starts the program when this file exists.
    cluster.runtime.put(node.container, {f"{JOB}/job.conf": conf})

    def pending() -> str | None:
        if cluster.state(node).started_at != started_at or cluster.state(node).exit_code:
            message = log_tail(cluster.runtime, node.container)
            raise JobRejected(f"the program of {job.name} ended before its query ran:\n{message}")
        return None if query_of(cluster, service) else "its query has not started"

    what = f"the program of {job.name}"
    try:
        wait_until(pending, what=what, limit_s=SUBMIT_S, clock=cluster.clock, every_s=0.2)
    except NotReadyInTime as error:
        raise JobRejected(str(error)) from error
    return query_of(cluster, service)


def _paths(names: Iterable[str]) -> str:
    """The paths of files of the job in the driver's container, as settings of Spark list them."""
    return ",".join(f"{JOB}/{name}" for name in names)


def query_of(cluster: LiveCluster, service: str) -> str:
    """The id of the query that the driver runs, the same after every restart of the driver; empty
    while there is none."""
    try:
        now = driver(cluster, service).now()
    except DriverUnreachable:
        return ""
    last = now.latest("query started", "query ended")
    return str(last["id"]) if last is not None and last["what"] == "query started" else ""


def cancel(cluster: LiveCluster, service: str) -> None:
    """Remove the driver's program and let the driver wait for another one."""
    node = driver_of(cluster, service)
    cluster.runtime.put(node.container, {f"{JOB}/job.conf": ""})
    cluster.runtime.kill(node.container)
    cluster.start_again(node)
