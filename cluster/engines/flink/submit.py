"""Submitting a job to Flink: SQL through the gateway, a jar through the JobManager."""

from __future__ import annotations

from pathlib import Path

from streamquake.cluster.engines.engine import JobRejected
from streamquake.cluster.engines.flink import job as flink_job
from streamquake.cluster.engines.flink.config import job_settings, version_of
from streamquake.cluster.engines.flink.options import as_read_by
from streamquake.cluster.engines.flink.rest import FlinkError, FlinkUnreachable, gateway, jobmanager
from streamquake.cluster.engines.flink.sql import StatementFailed, run_script
from streamquake.cluster.job import JobSpec
from streamquake.cluster.live_cluster import LiveCluster

PARALLELISM = "parallelism.default"

JARS = "/opt/flink/usrlib"
"""The folder in the gateway for the jars of an SQL job."""
RUN_S = 60.0
"""The program's own main method runs in the JobManager until it has submitted its job."""


def submit(cluster: LiveCluster, service: str, job: JobSpec) -> str:
    """Submit a job; returns its id. Raises JobRejected with Flink's root cause."""
    declared = {
        **job_settings(cluster.topology, service, job.config),
        "pipeline.name": job.name,
        PARALLELISM: str(job.parallelism),
    }
    version = version_of(cluster.topology, service)
    settings = {key: str(value) for key, value in as_read_by(version, declared).items()}
    try:
        if job.sql is not None:
            return _submit_sql(cluster, service, job, settings)
        return _submit_jar(cluster, service, job, settings)
    except (StatementFailed, FlinkError, FlinkUnreachable) as error:
        raise JobRejected(f"{service} rejected the job {job.name}: {error}") from error


def _submit_sql(cluster: LiveCluster, service: str, job: JobSpec, settings: dict[str, str]) -> str:
    assert job.sql is not None
    added = "".join(f"ADD JAR '{path}';\n" for path in _put_jars(cluster, service, job))
    with gateway(cluster, service) as rest:
        started = run_script(rest, added + job.sql, settings, cluster.clock)
    if len(started) == 1:
        return started[0]
    for other in started:
        flink_job.cancel(cluster, service, other)
    raise JobRejected(
        f"the SQL of {job.name} started {len(started)} jobs, expected one; several inserts belong "
        "into one EXECUTE STATEMENT SET BEGIN ... END"
    )


def _put_jars(cluster: LiveCluster, service: str, job: JobSpec) -> list[str]:
    """Put the jars of an SQL job into the gateway, which sends them to the cluster with the job;
    their paths there."""
    contents = {f"{JARS}/{name}": jar for name, jar in job.jar_contents().items()}
    if contents:
        node = cluster.of_role(f"{service}/gateway")[0]
        cluster.runtime.put(node.container, contents)
    return list(contents)


def _submit_jar(cluster: LiveCluster, service: str, job: JobSpec, settings: dict[str, str]) -> str:
    assert job.jar is not None
    run = {
        "entryClass": job.entry_class,
        "programArgsList": list(job.args),
        "parallelism": job.parallelism,
        "flinkConfiguration": settings,
    }
    with jobmanager(cluster, service) as rest:
        uploaded = rest.upload("/jars/upload", "jarfile", Path(job.jar))
        name = str(uploaded["filename"]).rsplit("/", 1)[-1]
        request = {key: value for key, value in run.items() if value is not None}
        return str(rest.post(f"/jars/{name}/run", request, within_s=RUN_S)["jobid"])
