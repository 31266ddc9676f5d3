"""Numbered records: each carries its key, its number within the key, event time and checksum."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from confluent_kafka import Producer
from pydantic import Field, model_validator
from pyspark.sql import DataFrame, SparkSession

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.engines.kafka.connection import KafkaConnection, client_of
from streamquake.cluster.runtime.clock import Clock
from streamquake.faults.mechanisms.key_shares import Skew
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.experiment.workload import Workload, workloads
from streamquake.harness.workloads.numbered.frame import frame
from streamquake.harness.workloads.numbered.generation_parameters import generation_parameters_of
from streamquake.harness.workloads.numbered.layout import MAX_SLOTS, KeyDistribution, segments
from streamquake.harness.workloads.numbered.records import LoadDefinition
from streamquake.harness.workloads.numbered.sender import NumberedSender
from streamquake.harness.workloads.numbered.skew import SkewChange
from streamquake.harness.workloads.numbered.workload_changes import (
    ScheduledChange,
    active_changes,
    scheduled_changes_of,
)
from streamquake.harness.workloads.sending.ranges import send_problems, sent_ranges
from streamquake.harness.workloads.sending.sender import producer_settings
from streamquake.reports.record.history import History
from streamquake.topologies.model import Topic

LONGEST_STEP_US = 3_600_000_000
"""Multiplied by the largest number of records, this fits in 64 bits."""


@workloads.register
class Numbered(Workload):
    """Records that are a pure function of (seed, workload changes, index), so that the expected
    result is computed without a list of the records sent."""

    name: ClassVar[str] = "numbered"

    records: Annotated[int, Field(ge=1, le=1_000_000_000)]
    """How many records are sent."""
    rate_per_s: Annotated[int, Field(ge=1, le=10_000_000)]
    """Records a second."""
    keys: Annotated[int, Field(ge=1, le=MAX_SLOTS)] = 128
    """How many keys the records have."""
    payload_bytes: Annotated[int, Field(ge=0, le=900_000)] = 80
    """The length of the payload of each record."""
    partitions: Annotated[int, Field(ge=1, le=256)] = 4
    """Partitions of the topic."""
    topic: Topic = "input"
    """The topic that is written to; `${input}` in a job's program."""
    skew: Skew = Skew()
    """How unevenly keys are chosen."""
    skew_changes: Annotated[tuple[SkewChange, ...], Field(strict=False)] = ()
    """Changes of the skew, each from one record on."""
    event_step_us: Annotated[int, Field(ge=0, le=LONGEST_STEP_US)] | None = None
    """Event time between two records in microseconds; by default it follows from the rate."""
    delivery_timeout_s: Annotated[float, Field(gt=0, le=600)] = 60
    """A record not acknowledged within this time is unknown: it may have arrived, or not."""

    @model_validator(mode="after")
    def _changes_in_order(self) -> Numbered:
        starts = [0, *(change.at_record for change in self.skew_changes), self.records]
        if any(later <= earlier for earlier, later in itertools.pairwise(starts)):
            raise ValueError(
                "skew_changes: expected at_record to rise from change to change and to stay "
                f"below records ({self.records}), got {starts[1:-1]}"
            )
        return self

    @property
    def seconds(self) -> float:
        return self.records / self.rate_per_s

    @property
    def planned(self) -> int:
        return self.records

    def topics(self) -> Mapping[str, int]:
        return {self.topic: self.partitions}

    def load_definition(
        self, seed: int, scheduled_changes: Sequence[ScheduledChange] = ()
    ) -> LoadDefinition:
        """All parameters that determine every record under this seed and these changes.

        A change affects no earlier record. Raises ValueError for an unknown
        disturbance.
        """
        step = (1000, self.rate_per_s) if self.event_step_us is None else (self.event_step_us, 1000)
        return LoadDefinition(
            seed=seed,
            segments=segments(seed, self._distributions(scheduled_changes), self.records),
            records=self.records,
            partitions=self.partitions,
            event_ms=step,
        )

    def _distributions(self, changes: Sequence[ScheduledChange]) -> list[KeyDistribution]:
        planned: dict[int, Skew] = {0: self.skew}
        planned |= {change.at_record: change for change in self.skew_changes}
        starts = {
            *planned,
            *(
                workload_change.at_record
                for workload_change in changes
                if workload_change.at_record < self.records
            ),
        }
        distributions: list[KeyDistribution] = []
        skew = self.skew
        for start in sorted(starts):
            skew = planned.get(start, skew)
            active = tuple(active_changes(changes, start).values())
            newest_skew = next((s for c in reversed(active) if (s := c.change.skew)), skew)
            parameters = generation_parameters_of(self.payload_bytes, active)
            distribution = KeyDistribution(
                start=start, shares=newest_skew.shares(self.keys), generation=parameters
            )
            # A change of the rate alone does not change the records.
            if (
                not distributions
                or replace(distribution, start=distributions[-1].start) != distributions[-1]
            ):
                distributions.append(distribution)
        return distributions

    def start(
        self,
        brokers: KafkaConnection,
        seed: int,
        clock: Clock,
        record_event: RecordEvent,
        measure: RecordSample,
    ) -> NumberedSender:
        sender = NumberedSender(
            producer=client_of(Producer, producer_settings(brokers, self.delivery_timeout_s)),
            topic=self.topic,
            definition_of=partial(self.load_definition, seed),
            rate_per_s=self.rate_per_s,
            clock=clock,
            record_event=record_event,
            measure=measure,
        )
        return sender.begin()

    def send_problems(self, history: History) -> Iterator[str]:
        return send_problems(history)

    def sent_frame(self, spark: SparkSession, history: History, seed: int, data: Path) -> DataFrame:
        definition = self.load_definition(seed, scheduled_changes_of(history))
        return frame(spark, definition, sent_ranges(history, self.records))

    def input_promise(self) -> JobPromise:
        same = Output(kafka=self.topic, compare=("amount", "payload", "checksum"), order="seq")
        return JobPromise(outputs={"input": same}, expected="SELECT * FROM sent")
