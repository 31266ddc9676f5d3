"""Prepares the experiment's job for its cluster: creates topics and fills the placeholders.

The SQL of a job has placeholders instead of addresses (`experiment/job_placeholders.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import (
    FindsRunningJobs,
    RecordEvent,
    RecordSample,
    ReportsPositions,
    ReportsTopics,
    RunsJobs,
    job_runner,
)
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.images.maven_jars import fetch_jars
from streamquake.cluster.job import CurrentJob, JobSpec
from streamquake.harness.experiment.job_placeholders import placeholders
from streamquake.harness.experiment.model import JOB, Experiment
from streamquake.topologies.templates import render

REPLACEMENT_POLL_S = 0.05
"""Poll interval for a job that replaces one that has ended."""


@dataclass(frozen=True, kw_only=True)
class PreparedJob:
    """A job that is ready to submit, and the service that will run it."""

    name: str = JOB
    service: str
    runner: RunsJobs
    spec: JobSpec
    values: Mapping[str, str]
    """The values of its placeholders."""
    writes_files: bool

    def submit(self, cluster: Cluster) -> RunningJob:
        """Submit it; `job` of the experiment is from then on the cluster's job, which faults
        disturb. Raises JobRejected."""
        job = self.runner.submit(cluster, self.service, self.spec)
        if self.name == JOB:
            cluster.run.job = CurrentJob(
                service=self.service, id=job, spec=self.spec, values=self.values
            )
        return RunningJob(
            name=self.name,
            service=self.service,
            runner=self.runner,
            cluster=cluster,
            writes_files=self.writes_files,
            other_id=None if self.name == JOB else job,
        )


@dataclass(frozen=True, kw_only=True)
class RunningJob:
    """A job of a run: its current job, also after a restart replaced the first one, or one of its
    other jobs, which nothing replaces."""

    name: str = JOB
    service: str
    runner: RunsJobs
    cluster: Cluster
    writes_files: bool
    other_id: str | None = None
    """The engine's id of one of the other jobs."""

    @property
    def id(self) -> str:
        """The engine's id of the job."""
        if self.other_id is not None:
            return self.other_id
        assert self.cluster.run.job is not None, "a run's cluster has its job until the run's end"
        return self.cluster.run.job.id

    def pending(self) -> str | None:
        """Why not all tasks of the job are running, or None when they are."""
        return self.runner.job_pending(self.cluster, self.service, self.id)

    def drain_pending(self) -> Callable[[], str | None]:
        """A function to poll: why the records sent until now are not committed yet, or None."""
        since_ms = self.cluster.clock.epoch_ms()
        return lambda: self.runner.drain_pending(
            self.cluster, self.service, self.id, since_ms, writes_files=self.writes_files
        )

    def positions(self, topic: str) -> Mapping[int, int]:
        """Partition -> the offset that the job has read to; empty where the engine does not
        report it."""
        if not isinstance(self.runner, ReportsPositions):
            return {}
        return self.runner.positions(self.cluster, self.service, self.id, topic)

    def topics(self) -> Set[str]:
        """The topics that its tasks read; empty where the engine does not report them. Raises
        JobUnreachable."""
        if not isinstance(self.runner, ReportsTopics):
            return frozenset()
        return self.runner.topics(self.cluster, self.service, self.id)

    def follow(
        self, record_event: RecordEvent, measure: RecordSample, stop: threading.Event
    ) -> None:
        """Watch the job until `stop`, in the caller's thread; when it ends, watch the job that
        replaces it."""
        followed = ""
        while not stop.is_set():
            if (job := self.id) != followed:
                followed = job
                self.runner.follow(self.cluster, self.service, job, record_event, measure, stop)
            stop.wait(REPLACEMENT_POLL_S)


def prepare_job(experiment: Experiment, cluster: Cluster, group: str) -> PreparedJob | None:
    """Create the topics, and fill the job's placeholders for this cluster; None without a job to
    submit. Raises TopicMismatch if an existing Kafka lacks a topic, JarMissing, and LookupError if
    no service runs jobs."""
    _create_topics(experiment, cluster)
    if experiment.job is None or experiment.job.existing is not None:
        return None
    return _prepared(experiment, group, JOB)


def prepare_other_jobs(experiment: Experiment, group: str) -> tuple[PreparedJob, ...]:
    """The other jobs, in the order of their submission; their topics are created with those of the
    job. Raises JarMissing, and LookupError if no service runs jobs."""
    return tuple(_prepared(experiment, group, name) for name in experiment.other_jobs)


def _prepared(experiment: Experiment, group: str, name: str) -> PreparedJob:
    """A job with its placeholders filled in."""
    service_and_runner = job_runner(experiment.topology)
    if service_and_runner is None:
        raise LookupError(f"topology {experiment.topology.name} has no service that runs jobs")
    service, runner = service_and_runner
    job, values = experiment.jobs[name], placeholders(experiment, group, name)
    spec = JobSpec(
        name=experiment.name if name == JOB else f"{experiment.name}.{name}",
        sql=None if job.sql is None else render(job.sql, values),
        pyspark=None if job.pyspark is None else render(job.pyspark, values),
        jar=job.jar,
        jars=fetch_jars(job.jars),
        jar_prefix="" if name == JOB else f"{name}-",
        modules=job.modules,
        entry_class=job.entry_class,
        args=tuple(render(arg, values) for arg in job.args),
        parallelism=job.parallelism,
        config=job.config,
    )
    return PreparedJob(
        name=name,
        service=service,
        runner=runner,
        spec=spec,
        values=values,
        writes_files=job.promise.writes_files,
    )


def existing_job(experiment: Experiment, cluster: Cluster) -> RunningJob | None:
    """The job that runs already, where its engine can be asked about it; it becomes the cluster's
    job. Raises LookupError where none or several have its name."""
    job, found = experiment.job, job_runner(experiment.topology)
    if job is None or job.existing is None or found is None:
        return None
    service, runner = found
    if not isinstance(runner, FindsRunningJobs):
        return None
    running = runner.only_job(cluster, service, job.existing.job)
    cluster.run.job = CurrentJob(service=service, id=running)
    return RunningJob(
        service=service, runner=runner, cluster=cluster, writes_files=job.promise.writes_files
    )


def _reject_existing(cluster: Cluster, service: str, names: Set[str]) -> None:
    """Raises TopicMismatch where a topic is there already: its records would count as the run's."""
    if existing := sorted(names & set(kafka_admin.topics(cluster, service))):
        raise kafka_admin.TopicMismatch(
            f"the topic {existing[0]} is there before the run: its records are not of this run; "
            "use another name, or another cluster"
        )


def _create_topics(experiment: Experiment, cluster: Cluster) -> None:
    """Create the input topics, and the output topics with timestamps set on append. In an existing
    Kafka no topic is created: the current end offsets are where the run begins."""
    service = experiment.topology.service_of("kafka")
    if service is None:
        return
    inputs = experiment.workload.topics()
    promises = [*(job.promise for job in experiment.other_jobs.values()), experiment.promise]
    outputs = {
        o.kafka: promise.partitions
        for promise in promises
        for o in promise.outputs.values()
        if o.kafka is not None and o.kafka not in inputs
    }
    if experiment.topology.services[service].endpoint is not None:
        wanted = {**dict.fromkeys(outputs), **inputs}
        cluster.run.begins = kafka_admin.ends_of_existing(cluster, service, wanted)
        return
    _reject_existing(cluster, service, {*inputs, *outputs})
    kafka_admin.create_topics(cluster, service, inputs)
    kafka_admin.create_topics(cluster, service, outputs, kafka_admin.STAMPED_ON_APPEND)
