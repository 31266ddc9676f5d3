"""The load of a run: its running workload, and the output that is observed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.harness.experiment.job_chain import topics_read
from streamquake.harness.experiment.model import ExistingJob, Experiment
from streamquake.harness.experiment.workload import RunningWorkload
from streamquake.harness.run.cluster_lease import background_thread
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.job_preparation import RunningJob
from streamquake.harness.run.read_lag import topic_lag
from streamquake.reports.record.event import Action

POLL_EVERY_S = 0.2
"""Poll interval of the end offsets of the output topics; the resolution of the first output."""
SAMPLE_EVERY_NS = 10**9


@dataclass(frozen=True, kw_only=True)
class RunLoad:
    """A running workload, and the watch on its outputs."""

    running: RunningWorkload
    seconds: float
    """How long the workload takes to send all records at its own rate."""
    watch: OutputWatch

    def stop(self) -> None:
        self.running.stop()

    def failure(self) -> str | None:
        return self.running.failure

    def pending(self) -> str | None:
        """Why the workload is not finished, or None when it is."""
        return None if self.running.done else f"{self.running.sent:,} records acknowledged so far"

    def lag_pending(self, job: RunningJob | None) -> str | None:
        """Why the job has not read all records sent, or None when it has.

        A job commits its read offsets to its consumer group when a checkpoint completes, on an
        idle topic many seconds late. Its engine may report them earlier.
        """
        try:
            lag = self.watch.lag(job)
        except KafkaUnreachable as error:
            return str(error)
        if not lag:
            return None
        if not self.watch.group:
            return f"the job has not read {lag:,} records yet"
        own = "" if job is None else " (a job's group is `${run}`)"
        return f"the consumer group {self.watch.group}{own} has not read {lag:,} records yet"

    def sample_last_lag(self, job: RunningJob | None) -> None:
        """Take the last sample of the lag, since the group's offsets may be many seconds old."""
        with suppress(KafkaUnreachable):
            self.watch.sample_last_lag(job)

    def quiet_pending(self, job: ExistingJob) -> Callable[[], str | None]:
        """A function to poll for an existing job: why it may have more output to write, or None.

        It is None when the job's consumer group has read all of the input (if the group is known)
        and no output has arrived for `quiet_s`, counted from now.
        """
        since_ns = self.watch.polled_ns

        def pending() -> str | None:
            if job.group is not None and (reason := self.lag_pending(None)) is not None:
                return reason
            silent_s = (self.watch.polled_ns - max(since_ns, self.watch.grown_ns)) / 1e9
            message = f"no output for {silent_s:.0f} s, and {job.quiet_s:g} s are needed"
            return None if silent_s >= job.quiet_s else message

        return pending


@contextmanager
def start_load(
    experiment: Experiment, cluster: Cluster, loop: EventLoop, group: str
) -> Iterator[RunLoad]:
    """Send the workload and watch the outputs until the end of the block. Raises LookupError if the
    topology has no Kafka."""
    service = experiment.topology.service_of("kafka")
    if service is None:
        raise LookupError(f"topology {experiment.topology.name} has no kafka to send to")
    stop = threading.Event()
    watch = OutputWatch(experiment, cluster, loop, service, group, stop)
    running = experiment.workload.start(
        kafka_admin.connection(cluster, service),
        experiment.seed,
        loop.clock,
        loop.record_event,
        loop.measure,
    )
    with ExitStack() as stack:
        stack.callback(running.stop)
        cluster.run.steering = running.steering
        stack.enter_context(background_thread(watch.follow, loop, "watch-outputs", stop.set))
        yield RunLoad(running=running, seconds=experiment.workload.seconds, watch=watch)


class OutputWatch:
    """Polls the last stable offsets of the output topics and the lag of the job. The last poll was
    at `polled_ns`; output last grew at `grown_ns`."""

    def __init__(
        self,
        experiment: Experiment,
        cluster: Cluster,
        loop: EventLoop,
        service: str,
        group: str,
        stop: threading.Event,
    ) -> None:
        self._cluster = cluster
        self._loop = loop
        self._service = service
        existing = None if experiment.job is None else experiment.job.existing
        self.group = group if existing is None else existing.group or ""
        self._stop = stop
        self._inputs = (
            tuple(experiment.workload.topics())
            if experiment.job is None
            else topics_read(experiment, experiment.job)
        )
        self._samples_lag = experiment.checkpointed and bool(self.group)
        outputs = experiment.promise.outputs
        self._topics = {name: o.kafka for name, o in outputs.items() if o.kafka is not None}
        self._ends = {
            name: sum(cluster.run.begins.get(topic, {}).values())
            for name, topic in self._topics.items()
        }
        self._stable: dict[str, dict[int, int]] = {}
        self._sampled = dict(self._ends)
        self._sampled_ns = self.polled_ns = self.grown_ns = loop.clock.now_ns()

    def follow(self) -> None:
        """Poll until `stop`, in the caller's thread."""
        while not self._stop.wait(POLL_EVERY_S):
            try:
                self.poll()
            except KafkaUnreachable:
                continue  # a broker under a fault may not answer; the next poll tries again

    def poll(self) -> None:
        """Record which outputs grew since the last poll, and take samples once a second. Raises
        KafkaUnreachable."""
        for name, topic in self._topics.items():
            stable = kafka_admin.end_offsets(self._cluster, self._service, topic)
            # A transaction left open before the run can hold the stable end behind its begin.
            begins = self._cluster.run.begins.get(topic, {})
            self._stable[name] = {n: max(end, begins.get(n, 0)) for n, end in stable.items()}
            end = sum(self._stable[name].values())
            if end > self._ends[name]:
                grown, self._ends[name] = end - self._ends[name], end
                self.grown_ns = self._loop.clock.now_ns()
                self._loop.record(
                    Action.OUTPUT_SEEN, process=f"output-{name}", output=name, end=end, grown=grown
                )
        self.polled_ns = now_ns = self._loop.clock.now_ns()
        if now_ns - self._sampled_ns >= SAMPLE_EVERY_NS:
            elapsed_s = (now_ns - self._sampled_ns) / 1e9
            self._sampled_ns = now_ns
            self._sample(elapsed_s)

    def _sample(self, elapsed_s: float) -> None:
        for name, end in self._ends.items():
            self._loop.measure("output_per_s", name, (end - self._sampled[name]) / elapsed_s)
            self._sampled[name] = end
        for name, topic in self._topics.items():
            self._sample_held_back(name, topic)
        if self._samples_lag:
            self._sample_lag(None)

    def sample_last_lag(self, job: RunningJob | None) -> None:
        """Sample the lag by the positions that the job reports; later polls sample none. Raises
        KafkaUnreachable."""
        if self._samples_lag:
            self._samples_lag = False
            self._sample_lag(job)

    def _sample_lag(self, job: RunningJob | None) -> None:
        self._loop.measure("lag", ", ".join(self._inputs), self.lag(job))

    def _sample_held_back(self, name: str, topic: str) -> None:
        """Sample how many records read_committed readers cannot read yet, for each partition.

        The stable ends were requested before the ends. Records written in between make `held_back`
        too large, never too small; it is exact when no producer writes. A partition with an unknown
        end gets no sample, because unknown is not 0.
        """
        ends = kafka_admin.end_offsets(self._cluster, self._service, topic, committed=False)
        for partition, stable_end in self._stable[name].items():
            where, end = f"{name}/{partition}", ends.get(partition)
            self._loop.measure("stable_end", where, stable_end)
            if end is None:
                continue
            self._loop.measure("end", where, end)
            self._loop.measure("held_back", where, max(0, end - stable_end))

    def lag(self, job: RunningJob | None = None) -> int:
        """How many records of its topics the job has not read, by the positions it reports, or else
        by the offsets that its consumer group has committed. Two sources of a job commit to one
        group, so the group may hold the offset of either source. Markers of transactions count.
        Raises KafkaUnreachable."""
        return sum(self._lag_of(topic, job) for topic in self._inputs)

    def _lag_of(self, topic: str, job: RunningJob | None) -> int:
        ends = kafka_admin.end_offsets(self._cluster, self._service, topic)
        return topic_lag(self._cluster, self._service, topic, ends, group=self.group, job=job)
