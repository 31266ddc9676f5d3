"""A recorded data set: each line of a file is sent as one record, unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import pyarrow.parquet as pq
from confluent_kafka import Producer
from pydantic import AfterValidator, Field
from pyspark.sql import DataFrame, SparkSession

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.runtime.clock import Clock
from streamquake.harness.experiment.outputs import ColumnName, JobPromise, Output
from streamquake.harness.experiment.workload import Workload, workloads
from streamquake.harness.workloads.recorded.column_types import arrow_type
from streamquake.harness.workloads.recorded.data_set import LINES, RECORDS, SUFFIXES, read_data_set
from streamquake.harness.workloads.recorded.frame import frame
from streamquake.harness.workloads.recorded.sender import RecordedSender
from streamquake.harness.workloads.sending.ranges import send_problems, sent_ranges
from streamquake.harness.workloads.sending.sender import producer_settings
from streamquake.reports.record.history import History
from streamquake.topologies.model import Topic

STORED = "sent.records"
"""The folder with the data set in the folder `data` of a run."""


def _known_type(name: str) -> str:
    arrow_type(name)
    return name


ColumnType = Annotated[str, AfterValidator(_known_type)]


@workloads.register
class Recorded(Workload):
    """The JSON lines of a file, in their order. The columns of `sent` are their fields, `index` and
    `status`. Faults of the data cannot change them."""

    name: ClassVar[str] = "recorded"
    generated: ClassVar[bool] = False

    file: str
    """JSON lines, by a path from the folder of the experiment's document; one gigabyte at most."""
    rate_per_s: Annotated[int, Field(ge=1, le=10_000_000)]
    """Records a second."""
    topic: Topic = "input"
    """The topic that is written to; `${input}` in a job's program."""
    partitions: Annotated[int, Field(ge=1, le=256)] = 4
    """Partitions of the topic."""
    key: ColumnName | None = None
    """The field whose value is the Kafka key: text or a whole number. Its hash chooses the
    partition, as in Java's client; without a key the partitions take turns."""
    columns: Mapping[ColumnName, ColumnType] = {}
    """Field -> type: STRING, BOOLEAN, INT, BIGINT, DOUBLE or DECIMAL(digits, fraction). By default
    the narrowest of STRING, BOOLEAN, BIGINT and DOUBLE that represents all values exactly; objects
    and lists are the text of their JSON."""
    delivery_timeout_s: Annotated[float, Field(gt=0, le=600)] = 60
    """A record not acknowledged within this time is unknown: it may have arrived, or not."""
    records: Annotated[int, Field(ge=1)] | None = None
    """How many records the file must have; any number when left out."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """The checksum that its lines must have, as runs record it; any when left out."""

    @property
    def seconds(self) -> float:
        return (self.records or 0) / self.rate_per_s

    @property
    def planned(self) -> int | None:
        return self.records

    def topics(self) -> Mapping[str, int]:
        return {self.topic: self.partitions}

    def with_files(self, find: Callable[[str], Path]) -> Recorded:
        file = find(self.file).resolve()
        if file.suffix not in SUFFIXES:
            raise ValueError(f"{file}: expected JSON lines in a file {', '.join(SUFFIXES)}")
        return self._of(file)

    def with_stored(self, data: Path) -> Recorded:
        return self._of(data / STORED / LINES)

    def _of(self, file: Path) -> Recorded:
        try:
            found = read_data_set(file)
            if self.records not in (None, len(found.lines)):
                raise ValueError(f"it has {len(found.lines):,} records, expected {self.records:,}")
            if self.sha256 not in (None, found.sha256):
                raise ValueError(f"its lines have changed: their checksum is {found.sha256}")
            columns = found.columns(self.columns)
            if self.key is not None and self.key not in columns:
                raise ValueError(f"no record has the field {self.key} of `key`")
            found.outgoing(self.key, self.partitions)
        except (OSError, ValueError) as error:
            raise ValueError(f"{file}: {error}") from error
        resolved = {"file": str(file), "columns": columns, "records": len(found.lines)}
        return self.model_copy(update={**resolved, "sha256": found.sha256})

    def store(self, data: Path) -> None:
        read_data_set(Path(self.file)).store(data / STORED, self.columns)

    def start(
        self,
        bootstrap: str,
        seed: int,
        clock: Clock,
        record_event: RecordEvent,
        measure: RecordSample,
    ) -> RecordedSender:
        found = read_data_set(Path(self.file))
        sender = RecordedSender(
            found.outgoing(self.key, self.partitions),
            producer=Producer(producer_settings(bootstrap, self.delivery_timeout_s)),
            topic=self.topic,
            rate_per_s=self.rate_per_s,
            clock=clock,
            record_event=record_event,
            measure=measure,
        )
        return sender.begin()

    def send_problems(self, history: History) -> Iterator[str]:
        return send_problems(history)

    def sent_frame(self, spark: SparkSession, history: History, seed: int, data: Path) -> DataFrame:
        records = data / STORED / RECORDS
        stored: int = pq.read_metadata(records).num_rows
        if stored != self.records:
            raise ValueError(
                f"{STORED} has {stored:,} records, and {self.records:,} were to be sent"
            )
        return frame(spark, records, self.columns, sent_ranges(history, self.records))

    def input_promise(self) -> JobPromise:
        same = Output(kafka=self.topic, identity=tuple(self.columns))
        return JobPromise(outputs={"input": same}, expected="SELECT * FROM sent")
