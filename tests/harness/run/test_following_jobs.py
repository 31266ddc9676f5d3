"""A run's job may be replaced: queries and watchers follow the new job."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.job import JobSpec
from streamquake.harness.experiment.model import JOB
from streamquake.harness.run.job_preparation import PreparedJob, RunningJob
from tests.fakes import fake_cluster


class Runner:
    """An engine whose first job is replaced while it is watched."""

    def __init__(self) -> None:
        self.watched: list[str] = []
        self.queried: list[str] = []

    def submit(self, cluster: Cluster, service: str, job: JobSpec) -> str:
        return "first"

    def job_pending(self, cluster: Cluster, service: str, job: str) -> str | None:
        self.queried.append(job)
        return None

    def drain_pending(
        self, cluster: Cluster, service: str, job: str, since_ms: int, *, writes_files: bool
    ) -> str | None:
        self.queried.append(f"{job}, which writes files" if writes_files else job)
        return None

    def follow(
        self,
        cluster: Cluster,
        service: str,
        job: str,
        record_event: Any,
        measure: Any,
        stop: threading.Event,
    ) -> None:
        self.watched.append(job)
        if job == "second":
            stop.set()
        else:
            replace_job(cluster)


def replace_job(cluster: Cluster) -> None:
    assert cluster.run.job is not None
    cluster.run.job = replace(cluster.run.job, id="second")


def submit_to(runner: Runner, cluster: Cluster, name: str = JOB) -> RunningJob:
    spec = JobSpec(name="mine", sql="INSERT", parallelism=2)
    prepared = PreparedJob(
        name=name,
        service="flink",
        runner=runner,  # type: ignore[arg-type]
        spec=spec,
        values={"run": "r"},
        writes_files=True,
    )
    return prepared.submit(cluster)


def test_the_cluster_records_how_its_job_was_submitted() -> None:
    cluster = fake_cluster()
    job = submit_to(Runner(), cluster)
    assert cluster.run.job is not None
    assert (job.id, cluster.run.job.id) == ("first", "first")
    assert cluster.run.job.spec == JobSpec(name="mine", sql="INSERT", parallelism=2)
    assert cluster.run.job.values == {"run": "r"}


def test_other_jobs_are_not_the_job_that_faults_disturb() -> None:
    runner, cluster = Runner(), fake_cluster()
    cluster.run.job = None
    other = submit_to(runner, cluster, "enrich")
    assert cluster.run.job is None
    job = submit_to(runner, cluster)
    replace_job(cluster)
    assert (other.name, other.id, job.name, job.id) == ("enrich", "first", JOB, "second")


def test_a_replacement_job_is_watched_next() -> None:
    runner, cluster = Runner(), fake_cluster()
    stop = threading.Event()
    submit_to(runner, cluster).follow(lambda event: None, lambda *sample: None, stop)
    assert runner.watched == ["first", "second"]


def test_queries_go_to_the_current_job_after_a_replacement() -> None:
    runner, cluster = Runner(), fake_cluster()
    job = submit_to(runner, cluster)
    drained = job.drain_pending()
    job.pending()
    replace_job(cluster)
    job.pending()
    drained()
    assert runner.queried == ["first", "second", "second, which writes files"]
