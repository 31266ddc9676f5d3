"""The experiment's job made ready for its cluster: topics created, placeholders filled in.

The SQL of a job knows nothing of addresses; it names them (`experiment/job_placeholders.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import (
    RecordEvent,
    RecordSample,
    ReportsPositions,
    RunsJobs,
    job_runner,
)
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.job import CurrentJob, JobSpec
from streamquake.harness.experiment.job_placeholders import placeholders
from streamquake.harness.experiment.model import Experiment
from streamquake.topologies.templates import render

REPLACED_S = 0.05
"""How often it is looked whether another job has taken the place of one that ended."""


@dataclass(frozen=True, kw_only=True)
class PreparedJob:
    """A job and the service that shall run it."""

    service: str
    runner: RunsJobs
    spec: JobSpec
    values: Mapping[str, str]
    """What its placeholders stood for."""

    def submit(self, cluster: Cluster) -> RunningJob:
        """Submit it, as the cluster's job from then on. Raises JobRefused."""
        job = self.runner.submit(cluster, self.service, self.spec)
        cluster.run.job = CurrentJob(
            service=self.service, id=job, spec=self.spec, values=self.values
        )
        return RunningJob(service=self.service, runner=self.runner, cluster=cluster)


@dataclass(frozen=True, kw_only=True)
class RunningJob:
    """The job of a run, also when another one has taken its place."""

    service: str
    runner: RunsJobs
    cluster: Cluster

    @property
    def id(self) -> str:
        """The engine's own id of the job that is there now."""
        assert self.cluster.run.job is not None, "a run's cluster has its job until the run's end"
        return self.cluster.run.job.id

    def pending(self) -> str | None:
        """Why the job does not run whole, or None when it does."""
        return self.runner.job_pending(self.cluster, self.service, self.id)

    def drain_pending(self) -> Callable[[], str | None]:
        """Why what was sent until now is not committed yet, to be asked again and again."""
        since_ms = self.cluster.clock.epoch_ms()
        return lambda: self.runner.drain_pending(self.cluster, self.service, self.id, since_ms)

    def positions(self, topic: str) -> Mapping[int, int]:
        """Partition -> how far the job has read, as far as its engine can say so at once."""
        if not isinstance(self.runner, ReportsPositions):
            return {}
        return self.runner.positions(self.cluster, self.service, self.id, topic)

    def follow(
        self, record_event: RecordEvent, measure: RecordSample, stop: threading.Event
    ) -> None:
        """Watch it until `stop`, in the caller's thread, and each that takes its place as soon as
        the one before has ended."""
        followed = ""
        while not stop.is_set():
            if (job := self.id) != followed:
                followed = job
                self.runner.follow(self.cluster, self.service, job, record_event, measure, stop)
            stop.wait(REPLACED_S)


def prepare_job(experiment: Experiment, cluster: Cluster, group: str) -> PreparedJob | None:
    """Create the topics, and fill the job's placeholders for this cluster; None without a job to
    submit. Raises TopicUnfit where topics are not to be created, and not there."""
    _create_topics(experiment, cluster)
    job = experiment.job
    if job is None or job.existing is not None:
        return None
    found = job_runner(experiment.topology)
    if found is None:
        raise LookupError(f"topology {experiment.topology.name} has no service that runs jobs")
    service, runner = found
    values = placeholders(experiment, group)
    spec = JobSpec(
        name=experiment.name,
        sql=None if job.sql is None else render(job.sql, values),
        pyspark=None if job.pyspark is None else render(job.pyspark, values),
        jar=job.jar,
        entry_class=job.entry_class,
        args=tuple(render(arg, values) for arg in job.args),
        parallelism=job.parallelism,
        config=job.config,
    )
    return PreparedJob(service=service, runner=runner, spec=spec, values=values)


def _create_topics(experiment: Experiment, cluster: Cluster) -> None:
    """The topics of the load, and those of the job, whose records shall say when they came; of a
    Kafka that somebody else runs, where they end now."""
    service = experiment.topology.service_of("kafka")
    if service is None:
        return
    inputs = experiment.workload.topics()
    outputs = {
        o.kafka: experiment.promise.partitions
        for o in experiment.promise.outputs.values()
        if o.kafka is not None and o.kafka not in inputs
    }
    if experiment.topology.services[service].endpoint is not None:
        wanted = {**dict.fromkeys(outputs), **inputs}
        cluster.run.begins = kafka_admin.ends_of_existing(cluster, service, wanted)
        return
    kafka_admin.create_topics(cluster, service, inputs)
    kafka_admin.create_topics(cluster, service, outputs, kafka_admin.STAMPED_ON_APPEND)
