"""The drain of several jobs: each is drained after those whose outputs it reads.

A job has read a topic of another one when it has read the last record that was committed until that
one was drained. Only then a checkpoint covers everything that it will ever read, and its own
outputs are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import JobUnreachable
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.harness.experiment.job_chain import (
    drain_order,
    group_of,
    topics_read,
    writers,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.data_ends import data_ends
from streamquake.harness.run.job_preparation import RunningJob
from streamquake.harness.run.read_lag import topic_lag


@dataclass(frozen=True, kw_only=True)
class TopicEnds:
    """The ends of a topic when the job that writes it was drained."""

    ends: Mapping[int, int]
    """Partition -> its end, with markers of transactions."""
    data: Mapping[int, int]
    """Partition -> the offset after its last record."""


class JobsDrain:
    """What is still missing until all jobs of a run are drained."""

    def __init__(
        self, experiment: Experiment, cluster: Cluster, jobs: Sequence[RunningJob]
    ) -> None:
        """Raises LookupError if the topology has no Kafka."""
        service = experiment.topology.service_of("kafka")
        if service is None:
            raise LookupError(f"topology {experiment.topology.name} has no kafka to read from")
        self._experiment = experiment
        self._cluster = cluster
        self._kafka = service
        self._jobs = {job.name: job for job in jobs}
        self._writers = writers(experiment)
        self._inputs = tuple(experiment.workload.topics())
        self._ends: dict[str, TopicEnds] = {}

    def in_order(self) -> Iterator[RunningJob]:
        """The jobs, each behind those whose outputs it reads."""
        return (self._jobs[name] for name in drain_order(self._experiment))

    def read_pending(self, job: RunningJob) -> str | None:
        """Why a job has not read everything that it will be given, or None; those before it are
        drained."""
        declared = topics_read(self._experiment, self._experiment.jobs[job.name])
        try:
            reported = job.topics()
            if others := sorted((reported & {*self._inputs, *self._writers}) - {*declared}):
                return f"{job.name} reads the topic {others[0]}, which its `reads` does not name"
            # Without a report, as after a takeover of the JobManager, it may read others too.
            if unseen := sorted({*declared} - reported):
                return f"{job.name} does not report that it reads {unseen[0]}"
            for topic in declared:
                if (reason := self._topic_pending(job, topic)) is not None:
                    return f"{job.name}: {reason}"
        except (KafkaUnreachable, JobUnreachable) as error:
            return f"{job.name}: {error}"
        return None

    def commit_pending(self, job: RunningJob) -> Callable[[], str | None]:
        """A function to poll: why a job has not committed what it had read when this was called."""
        pending = job.drain_pending()

        def with_name() -> str | None:
            reason = pending()
            return None if reason is None else f"{job.name}: {reason}"

        return with_name

    def end_pending(self) -> str | None:
        """Why the topics between the jobs may have more records than the jobs have read, or None:
        every job runs, and none of these topics has another end than its reader was drained by."""
        for job in self._jobs.values():
            if (reason := job.pending()) is not None:
                return f"{job.name}: {reason}"
        try:
            for topic, known in self._ends.items():
                if self._end(topic, committed=False) != known.ends:
                    return f"the topic {topic} has other ends than when its readers were drained"
        except KafkaUnreachable as error:
            return str(error)
        return None

    def _topic_pending(self, job: RunningJob, topic: str) -> str | None:
        if topic in self._inputs:
            ends: Mapping[int, int] = self._end(topic)
        else:
            if (reason := self._note_ends(topic)) is not None:
                return reason
            ends = self._ends[topic].data
        group = group_of(self._cluster.run.run_id, job.name)
        lag = topic_lag(self._cluster, self._kafka, topic, ends, group=group, job=job)
        if not lag:
            return None
        return f"it has not read {lag:,} records of {topic} yet (its consumer group is `${{run}}`)"

    def _note_ends(self, topic: str) -> str | None:
        """Note the ends of a topic whose writer is drained, once; or why they are not known yet."""
        if topic in self._ends:
            return None
        ends, written = self._end(topic), self._end(topic, committed=False)
        if ends != written:
            held_back = sum(written.values()) - sum(ends.values())
            return f"an open transaction holds back {held_back:,} offsets of {topic}"
        brokers = kafka_admin.connection(self._cluster, self._kafka)
        begins = self._cluster.run.begins.get(topic, {})
        data = data_ends(brokers, topic, ends, begins)
        self._ends[topic] = TopicEnds(ends=ends, data=data)
        return None

    def _end(self, topic: str, *, committed: bool = True) -> dict[int, int]:
        return kafka_admin.end_offsets(self._cluster, self._kafka, topic, committed=committed)
