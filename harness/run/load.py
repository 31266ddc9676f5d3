"""The load of a run: its workload under way, and what is seen of it at the far end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import KeepsOffsets, engine
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.harness.experiment.model import ExistingJob, Experiment
from streamquake.harness.experiment.workload import RunningWorkload
from streamquake.harness.run.cluster_lease import worker
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.job_preparation import RunningJob
from streamquake.reports.record.event import Action

LOOK_EVERY_S = 0.2
"""How often the ends of the output topics are looked at; the resolution of the first output."""
SAMPLE_EVERY_NS = 10**9


@dataclass(frozen=True, kw_only=True)
class RunLoad:
    """A workload under way."""

    running: RunningWorkload
    seconds: float
    """How long it takes to send by its own rate."""
    watch: OutputWatch

    def stop(self) -> None:
        self.running.stop()

    def failure(self) -> str | None:
        return self.running.failure

    def pending(self) -> str | None:
        """Why the workload is not finished, or None when it is."""
        return None if self.running.done else f"{self.running.sent:,} records acknowledged so far"

    def lag_pending(self, job: RunningJob | None) -> str | None:
        """Why the job has not read all that was sent, or None when it has.

        A job commits what it has read to its consumer group when a checkpoint completes, on an
        idle topic many seconds late; its engine may know better.
        """
        try:
            lag = self.watch.lag(job)
        except KafkaUnreachable as error:
            return str(error)
        if not lag:
            return None
        own = "" if job is None else " (a job's group is `${run}`)"
        return f"{lag:,} records were not read yet by the consumer group {self.watch.group}{own}"

    def quiet_pending(self, job: ExistingJob) -> Callable[[], str | None]:
        """Why a job of which nothing else is known may have more to write, or None when its group
        has read all of the input, where that is known, and nothing came for so long since now; to
        be asked again and again."""
        since_ns = self.watch.looked_ns

        def pending() -> str | None:
            if job.group is not None and (behind := self.lag_pending(None)) is not None:
                return behind
            silent_s = (self.watch.looked_ns - max(since_ns, self.watch.grown_ns)) / 1e9
            message = f"no output for {silent_s:.0f} s, and {job.quiet_s:g} s are needed"
            return None if silent_s >= job.quiet_s else message

        return pending


@contextmanager
def start_load(
    experiment: Experiment, cluster: Cluster, loop: EventLoop, group: str
) -> Iterator[RunLoad]:
    """Send the workload and watch the outputs, until the end of the block."""
    service = experiment.topology.service_of("kafka")
    if service is None:
        raise LookupError(f"topology {experiment.topology.name} has no kafka to send to")
    stop = threading.Event()
    watch = OutputWatch(experiment, cluster, loop, service, group, stop)
    running = experiment.workload.start(
        kafka_admin.bootstrap(cluster, service),
        experiment.seed,
        loop.clock,
        loop.record_event,
        loop.measure,
    )
    with ExitStack() as stack:
        stack.callback(running.stop)
        cluster.run.steering = running.steering
        stack.enter_context(worker(watch.follow, loop, "watch-outputs", stop.set))
        yield RunLoad(running=running, seconds=experiment.workload.seconds, watch=watch)


class OutputWatch:
    """Looks how far a reader of committed records may read each output topic, and at the lag. It
    looked last at `looked_ns`, and had seen output grow last at `grown_ns`."""

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
        self._inputs = tuple(experiment.workload.topics())
        self._checkpointed = experiment.checkpointed
        outputs = experiment.promise.outputs
        self._topics = {name: o.kafka for name, o in outputs.items() if o.kafka is not None}
        self._ends = {
            name: sum(cluster.run.begins.get(topic, {}).values())
            for name, topic in self._topics.items()
        }
        self._stable: dict[str, dict[int, int]] = {}
        self._sampled = dict(self._ends)
        self._sampled_ns = self.looked_ns = self.grown_ns = loop.clock.now_ns()

    def follow(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            try:
                self.poll()
            except KafkaUnreachable:
                continue  # a broker under a fault does not answer; the next look will tell

    def poll(self) -> None:
        """Say what grew since the last look, and take samples once a second. Raises
        KafkaUnanswered."""
        for name, topic in self._topics.items():
            stable = kafka_admin.end_offsets(self._cluster, self._service, topic)
            # What was left open before holds the stable end back behind where the run begins.
            begins = self._cluster.run.begins.get(topic, {})
            self._stable[name] = {n: max(end, begins.get(n, 0)) for n, end in stable.items()}
            end = sum(self._stable[name].values())
            if end > self._ends[name]:
                grown, self._ends[name] = end - self._ends[name], end
                self.grown_ns = self._loop.clock.now_ns()
                self._loop.record(
                    Action.OUTPUT_SEEN, process=f"output-{name}", output=name, end=end, grown=grown
                )
        self.looked_ns = now_ns = self._loop.clock.now_ns()
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
        if self._checkpointed:
            self._loop.measure("lag", ", ".join(self._inputs), self.lag())

    def _sample_held_back(self, name: str, topic: str) -> None:
        """How far a reader of committed records stands behind the end of each partition.

        The stable ends are those of this look, asked before the ends: what is written in between
        makes `held_back` too large by as much, never too small, and nothing once nobody writes. Of
        a partition whose end is not told there is no sample: not to be known is not 0.
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
        """Records sent that the job does not say it has read, or, where it does not say how far it
        is, that its consumer group has not committed: two sources of a job commit to one group,
        which then says how far either of them is. Raises KafkaUnanswered."""
        return sum(self._lag_of(topic, job) for topic in self._inputs)

    def _lag_of(self, topic: str, job: RunningJob | None) -> int:
        ends = kafka_admin.end_offsets(self._cluster, self._service, topic)
        committed = self._committed(topic)
        read = {} if job is None else job.positions(topic)
        return sum(
            max(0, end - read.get(partition, committed.get(partition, 0)))
            for partition, end in ends.items()
        )

    def _committed(self, topic: str) -> Mapping[int, int]:
        """Partition -> how far the job's consumer group has committed what it read, or its engine,
        where that keeps it elsewhere."""
        job = self._cluster.run.job
        if job is not None:
            runs = engine(self._cluster.topology.services[job.service].engine)
            if isinstance(runs, KeepsOffsets):
                return runs.committed(self._cluster, job.service, topic)
        return kafka_admin.group_offsets(self._cluster, self._service, topic, self.group)
