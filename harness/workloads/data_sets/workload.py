"""The base of the workloads that send a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import pyarrow.parquet as pq
from confluent_kafka import Producer
from pydantic import Field
from pyspark.sql import DataFrame, SparkSession

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.engines.kafka.connection import KafkaConnection, client_of
from streamquake.cluster.runtime.clock import Clock
from streamquake.harness.experiment.outputs import ColumnName, JobPromise, Output
from streamquake.harness.experiment.workload import Workload
from streamquake.harness.reconcile.reading.format import formats, not_in_topics
from streamquake.harness.reconcile.reading.record_format import RecordFormat
from streamquake.harness.workloads.data_sets.column_types import JSON
from streamquake.harness.workloads.data_sets.data_set import (
    RECORDS,
    DataSet,
    DataSetRecord,
    schema_of,
)
from streamquake.harness.workloads.data_sets.encodings.encoding import (
    ENCODED,
    encoding,
    incomparable_field,
)
from streamquake.harness.workloads.data_sets.frame import frame
from streamquake.harness.workloads.data_sets.sender import DataSetSender
from streamquake.harness.workloads.sending.pace import Pace
from streamquake.harness.workloads.sending.ranges import send_problems, sent_ranges
from streamquake.harness.workloads.sending.sender import producer_settings
from streamquake.reports.record.history import History
from streamquake.topologies.model import Topic

RatePerS = Annotated[int, Field(ge=1, le=10_000_000)]
STORED = "sent.records"
"""The folder with the data set in the folder `data` of a run."""


class DataSetWorkload(RecordFormat, Workload):
    """Sends a data set, unchanged and in its order, as JSON, CSV, Avro or Protobuf. The columns of
    `sent` are its fields, `index` and `status`. Faults of the data cannot change it."""

    generated: ClassVar[bool] = False
    describing: ClassVar[tuple[str, ...]] = (
        *("format", "schema", "header", "message"),
        "tombstone",
    )

    topic: Topic = "input"
    """The topic that is written to; `${input}` in a job's program."""
    partitions: Annotated[int, Field(ge=1, le=256)] = 4
    """Partitions of the topic."""
    key: ColumnName | None = None
    """The field whose value is the Kafka key: text or a whole number. Its hash chooses the
    partition, as in Java's client; without a key the partitions take turns."""
    tombstone: ColumnName | None = None
    """A field that is true or false: a record in which it is true is sent with its `key` alone, as
    a tombstone that deletes the key."""
    delivery_timeout_s: Annotated[float, Field(gt=0, le=600)] = 60
    """A record not acknowledged within this time is unknown: it may have arrived, or not."""

    def data_set(self, seed: int) -> DataSet:
        """The records to be sent. Raises OSError, ValueError."""
        raise NotImplementedError

    def pace(self, found: DataSet, now_ns: int) -> Pace:
        """When its records are sent. Raises ValueError."""
        raise NotImplementedError

    def after_ns(self, found: DataSet) -> Sequence[int]:
        """For each record, the nanoseconds from the first one until it is sent. Raises
        ValueError."""
        raise NotImplementedError

    @property
    def types(self) -> Mapping[str, str]:
        """Field -> type, of all fields of the records."""
        raise NotImplementedError

    def topics(self) -> Mapping[str, int]:
        return {self.topic: self.partitions}

    def outgoing(self, found: DataSet) -> Iterator[DataSetRecord]:
        """The records of a data set as they are sent. Raises ValueError for one that cannot be
        sent in its format."""
        if self.tombstone is not None:
            if self.key is None:
                raise ValueError("`tombstone` needs a `key`: what is deleted is named by it")
            if self.types.get(self.tombstone) != "BOOLEAN":
                raise ValueError(f"tombstone: expected a field of true or false: {self.tombstone}")
        encode = encoding(self, self.types)
        return found.outgoing(self.key, self.partitions, encode, self.tombstone)

    def check_encoding(self, found: DataSet) -> None:
        """Raise ValueError where a record of a data set cannot be sent in the format."""
        if encoding(self, self.types) is not None or self.tombstone is not None:
            for _ in self.outgoing(found):
                pass

    def store(self, data: Path, seed: int, indexes: Sequence[int] | None = None) -> None:
        """`indexes` has the index of each record where the load is a part of another one."""
        self.data_set(seed).store(data / STORED, self.types, indexes)

    def start(
        self,
        brokers: KafkaConnection,
        seed: int,
        clock: Clock,
        record_event: RecordEvent,
        measure: RecordSample,
    ) -> DataSetSender:
        found = self.data_set(seed)
        sender = DataSetSender(
            list(self.outgoing(found)),
            self.pace(found, clock.now_ns()),
            producer=client_of(Producer, producer_settings(brokers, self.delivery_timeout_s)),
            topic=self.topic,
            clock=clock,
            record_event=record_event,
            measure=measure,
        )
        return sender.begin()

    def send_problems(self, history: History) -> Iterator[str]:
        return send_problems(history)

    def sent_frame(self, spark: SparkSession, history: History, seed: int, data: Path) -> DataFrame:
        records = self.stored_records(data)
        return frame(spark, records, self.types, sent_ranges(history, self.planned or 0))

    def stored_records(self, data: Path) -> Path:
        """The file with the records that `store` wrote. Raises OSError, ValueError if it has not
        those of the plan."""
        records = data / STORED / RECORDS
        stored: int = pq.read_metadata(records).num_rows
        if stored != self.planned:
            raise ValueError(f"{STORED} has {stored} records, and {self.planned} were to be sent")
        if pq.read_schema(records) != schema_of(self.types):
            raise ValueError(f"{STORED} has other fields than the plan of the run")
        return records

    @property
    def input_problem(self) -> str | None:
        if self.tombstone is not None:
            return (
                "without a job the records are compared field by field, and a tombstone has no "
                "fields; give the experiment a job"
            )
        if self.format in ENCODED and (why := not_in_topics(formats[self.format])):
            return f"without a job the records are read again, and {why}; give the experiment a job"
        if (field := incomparable_field(self)) is not None:
            return (
                f"without a job the records are compared field by field, and a topic in "
                f"{self.format} has {field} in another type than the records sent; give the "
                "experiment a job"
            )
        if own := [name for name in self.types if name.startswith("_")]:
            return (
                f"without a job {own[0]} may be taken for a column of ours, which begin with an "
                "underscore; rename it, or give the experiment a job"
            )
        if mixed := [name for name, kind in self.types.items() if kind == JSON]:
            return (
                f"without a job the records are compared field by field, and {', '.join(mixed)} "
                "has objects, lists, values of several kinds or numbers that no column represents "
                "exactly; give the experiment a job"
            )
        return None

    def input_promise(self) -> JobPromise:
        same = Output.model_validate(
            {
                "kafka": self.topic,
                "identity": tuple(self.types),
                **self.model_dump(include=set(RecordFormat.model_fields), by_alias=True),
            }
        )
        return JobPromise(outputs={"input": same}, expected="SELECT * FROM sent")
