"""Several topics: each has a load of its own, and all are sent as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Annotated, ClassVar

from confluent_kafka import Producer
from pydantic import AfterValidator, Field, model_validator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.engines.kafka.connection import KafkaConnection, client_of
from streamquake.cluster.runtime.clock import Clock
from streamquake.harness.experiment.outputs import INPUT_FOLDER, JobPromise
from streamquake.harness.experiment.workload import Workload, workloads
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.workloads.data_sets.column_names import reject_names
from streamquake.harness.workloads.data_sets.data_set import DataSetRecord
from streamquake.harness.workloads.data_sets.frame import frame
from streamquake.harness.workloads.data_sets.sender import DataSetSender
from streamquake.harness.workloads.data_sets.workload import DataSetWorkload
from streamquake.harness.workloads.recorded import Recorded
from streamquake.harness.workloads.sending.pace import OwnPace
from streamquake.harness.workloads.sending.ranges import send_problems, sent_ranges
from streamquake.harness.workloads.sending.sender import producer_settings
from streamquake.harness.workloads.template import Template
from streamquake.harness.workloads.topics.merge import in_order_of_time
from streamquake.reports.record.history import History
from streamquake.topologies.model import Model, Topic
from streamquake.topologies.yaml_document import Place

STORED = "sent.topics"
"""The folder with a folder for each topic in the folder `data` of a run."""
EXAMPLE = {
    "orders": {"template": {"records": 1, "rate_per_s": 1, "fields": {"id": {"sequence": {}}}}}
}
TOPIC = "topic"
"""The column of `sent` with the topic of a record."""


class TopicLoad(Model):
    """What is sent to one topic: one load by its name, with its parameters."""

    template: Template | None = None
    """Records by a template."""
    recorded: Recorded | None = None
    """The records of a file."""

    @model_validator(mode="after")
    def _one_load(self) -> TopicLoad:
        if (self.template is None) == (self.recorded is None):
            raise ValueError("expected one of template, recorded")
        return self

    @property
    def load(self) -> DataSetWorkload:
        load = self.template or self.recorded
        assert load is not None
        return load

    def with_load(self, load: Workload) -> TopicLoad:
        """The same with another load of the same kind."""
        return self.model_copy(update={load.name: load})


def _sent_to_their_topics(loads: Mapping[str, TopicLoad]) -> Mapping[str, TopicLoad]:
    """The loads, each with its topic. Raises ValueError for a name that no column can have."""
    reject_names(loads)
    for topic in loads:
        if topic.casefold() == TOPIC:
            raise ValueError(f'the topic "{topic}" has the name of a column of `sent`; rename it')
    return {topic: _sent_to(topic, entry) for topic, entry in loads.items()}


def _sent_to(topic: str, entry: TopicLoad) -> TopicLoad:
    load = entry.load
    if "topic" in load.model_fields_set and load.topic != topic:
        raise ValueError(
            f'{topic}: its load names the topic "{load.topic}"; leave it out, the key is the topic'
        )
    return entry.with_load(load.model_copy(update={"topic": topic}))


@workloads.register
class Topics(Workload):
    """Records in several topics: each topic has a `template` or `recorded` load of its own, and all
    are sent at the same time, each at its own pace. The columns of `sent` are `topic`, one column
    for each topic with the fields of its records, which is null for those of other topics, `index`
    and `status`. Faults of the data cannot change the records."""

    name: ClassVar[str] = "topics"
    generated: ClassVar[bool] = False

    of: Annotated[
        Mapping[Topic, TopicLoad],
        Field(min_length=1, max_length=16, examples=[EXAMPLE]),
        AfterValidator(_sent_to_their_topics),
    ]
    """Topic -> its load, `{template: …}` or `{recorded: …}` with the parameters of these;
    `${input.TOPIC}` in a job's program."""

    @property
    def _loads(self) -> Mapping[str, DataSetWorkload]:
        return {topic: entry.load for topic, entry in self.of.items()}

    def loads(self) -> Mapping[Place, Workload]:
        return {("of", topic, load.name): load for topic, load in self._loads.items()}

    def with_loads(self, loads: Mapping[Place, Workload]) -> Topics:
        changed = {
            topic: self.of[topic].with_load(load)
            for topic, load in zip(self.of, loads.values(), strict=True)
        }
        return self.model_copy(update={"of": changed})

    def with_stored(self, data: Path) -> Topics:
        loads: dict[Place, Workload] = {
            ("of", topic, load.name): load.with_stored(data / STORED / topic)
            for topic, load in self._loads.items()
        }
        return self.with_loads(loads)

    def written_beside(self, folder: Path) -> Topics:
        loads: dict[Place, Workload] = {}
        for topic, load in self._loads.items():
            (own := folder / topic).mkdir(exist_ok=True)
            written = load.written_beside(own)
            files = {name: f"{topic}/{getattr(written, name)}" for name in written.files}
            loads["of", topic, load.name] = written.model_copy(update=files)
        return self.with_loads(loads)

    def store(self, data: Path, seed: int) -> None:
        after_ns = [load.after_ns(load.data_set(seed)) for load in self._loads.values()]
        indexes = in_order_of_time(after_ns)
        for (topic, load), own in zip(self._loads.items(), indexes, strict=True):
            load.store(data / STORED / topic, seed, own.tolist())

    @property
    def seconds(self) -> float:
        return max(load.seconds for load in self._loads.values())

    @property
    def planned(self) -> int | None:
        """How many records all loads will send; None before the files were read."""
        planned = [load.planned for load in self._loads.values()]
        return None if None in planned else sum(count or 0 for count in planned)

    def topics(self) -> Mapping[str, int]:
        return {topic: load.partitions for topic, load in self._loads.items()}

    def start(
        self,
        brokers: KafkaConnection,
        seed: int,
        clock: Clock,
        record_event: RecordEvent,
        measure: RecordSample,
    ) -> DataSetSender:
        records, after_ns = self.in_order(seed)
        delivery_timeout_s = max(load.delivery_timeout_s for load in self._loads.values())
        sender = DataSetSender(
            records,
            OwnPace(after_ns),
            producer=client_of(Producer, producer_settings(brokers, delivery_timeout_s)),
            topic=next(iter(self.of)),
            clock=clock,
            record_event=record_event,
            measure=measure,
        )
        return sender.begin()

    def in_order(self, seed: int) -> tuple[list[DataSetRecord], list[int]]:
        """The records of all topics in the order in which they are sent, and for each the
        nanoseconds from the first one until it is sent."""
        loads = list(self._loads.values())
        found = [load.data_set(seed) for load in loads]
        after_ns = [load.after_ns(part) for load, part in zip(loads, found, strict=True)]
        records = [
            record._replace(index=int(index), topic=load.topic)
            for load, part, own in zip(loads, found, in_order_of_time(after_ns), strict=True)
            for index, record in zip(own, load.outgoing(part), strict=True)
        ]
        return sorted(records, key=attrgetter("index")), sorted(chain.from_iterable(after_ns))

    def send_problems(self, history: History) -> Iterator[str]:
        return send_problems(history)

    def sent_frame(self, spark: SparkSession, history: History, seed: int, data: Path) -> DataFrame:
        ranges = sent_ranges(history, self.planned or 0)
        frames = []
        for topic, load in self._loads.items():
            records = frame(spark, load.stored_records(data / STORED / topic), load.types, ranges)
            fields = F.struct(*map(quote_name, load.types)).alias(topic)
            frames.append(records.select(F.lit(topic).alias(TOPIC), fields, "index", "status"))
        together = reduce(
            lambda some, more: some.unionByName(more, allowMissingColumns=True), frames
        )
        return together.select(TOPIC, *map(quote_name, self._loads), "index", "status")

    @property
    def input_problem(self) -> str | None:
        for topic, load in self._loads.items():
            if not topic[0].isalnum() or topic.casefold() == INPUT_FOLDER:
                return (
                    f'without a job each topic is an output of its name, and "{topic}" is no name '
                    "for one; rename it, or give the experiment a job"
                )
            if (problem := load.input_problem) is not None:
                return problem
        return None

    def input_promise(self) -> JobPromise:
        outputs = {}
        for topic, load in self._loads.items():
            (same,) = load.input_promise().outputs.values()
            # With the name of the relation a topic may be called like it.
            fields = f"sent.{quote_name(topic)}.*"
            expected = f"SELECT {fields}, status FROM sent WHERE topic = '{topic}'"
            outputs[topic] = same.model_copy(update={"expected": expected})
        return JobPromise(outputs=outputs)
