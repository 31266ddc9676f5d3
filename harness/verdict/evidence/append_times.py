"""When the broker appended the records of an output topic, on the run's clock.

The broker's stamps show when a record was written without asking the engine. They are of the
broker's wall clock. Containers share the wall clock of their host, and the run's clock was anchored
to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.verdict.evidence.broker_clock import broker_clock_moved
from streamquake.harness.verdict.evidence.reading_contradictions import incomplete_reading
from streamquake.harness.verdict.evidence.record_damage import reading_problem
from streamquake.harness.verdict.evidence.stamp_contradictions import (
    clock_contradiction,
    early_stamp,
)
from streamquake.topologies.errors import ErrorKind, StreamquakeError

STEP_BACK_MS = 100
"""Stamps of a partition grow. A larger step back means that a broker's clock was moved, not
adjusted."""


class AppendTimesUnknown(StreamquakeError, LookupError):
    """The append times of an output's records are not known; the message has the reason."""

    kind = ErrorKind.UNDECIDED


@dataclass(frozen=True, kw_only=True)
class AppendedRecords:
    """The committed records of one topic: partition, offset, timestamp_ms, key, value."""

    name: str
    topic: str
    partitions: int
    records: DataFrame
    map: Mapping[str, str]
    """Column -> its expression over the records, as in `Output.map`."""
    began_ms: int
    """Epoch milliseconds of the zero of the run's clock."""
    has_markers: bool = False
    """Whether offsets of the topic hold no record: the markers of ended transactions. Then its
    records may be readable as committed later than they were written."""

    def ms(self, at_ns: int) -> int:
        """A moment of the run's clock, in epoch milliseconds like the stamps."""
        return self.began_ms + at_ns // 1_000_000


def append_times_of(case: JudgedRun, output: str | None = None) -> AppendedRecords:
    """The records of an output by its name, or of the first that is a topic; they are examined once
    for all checks of a run. Raises AppendTimesUnknown."""
    topics = {n: o.kafka for n, o in case.experiment.promise.outputs.items() if o.kafka is not None}
    name = output or next(iter(topics), None)
    if name is None or name not in topics:
        raise AppendTimesUnknown(f"{name or 'the job'} is no output that is a topic")
    key = f"append times of {name}"
    if key not in case.shared:
        case.shared[key] = _examined(case, name, topics[name])
    examined: AppendedRecords = case.shared[key]
    return examined


def _examined(case: JudgedRun, name: str, topic: str) -> AppendedRecords:
    if broker_clock_moved(case):
        raise AppendTimesUnknown(
            f"{name}: a fault moved a broker's clock, so its stamps mean nothing"
        )
    stored = StoredOutput(path=case.data / name)
    if not stored.complete:
        raise AppendTimesUnknown(f"{name}: it was not read")
    if problem := reading_problem(stored, topic):
        raise AppendTimesUnknown(f"{name}: {problem}")
    if incomplete := "; ".join(incomplete_reading(case, name, stored)):
        raise AppendTimesUnknown(f"{name}: {incomplete}")
    facts = stored.facts()
    found = AppendedRecords(
        name=name,
        topic=topic,
        partitions=len(facts["ends"]),
        records=stored.frame(case.spark()).where("committed"),
        map=case.experiment.promise.outputs[name].map,
        began_ms=_began_ms(name, facts),
        has_markers=_has_markers(facts),
    )
    _reject_steps_back(found)
    contradiction = clock_contradiction(found, facts, case.history)
    if contradiction := contradiction or early_stamp(found, case.metrics, case.history):
        raise AppendTimesUnknown(
            f"{name}: {contradiction}, so the clock of a broker differs from that of this machine, "
            "and times between the two mean nothing; synchronise them"
        )
    return found


def _began_ms(name: str, facts: Mapping[str, Any]) -> int:
    if (stamped := facts.get("stamped")) != "append":
        message = {"create": "set by the producer", "mixed": "of two kinds"}.get(
            str(stamped), "unknown"
        )
        raise AppendTimesUnknown(
            f"{name}: the stamps of its records are {message}, not the moments at which the broker "
            "appended them"
        )
    if (began_ms := facts.get("began_ms")) is None:
        raise AppendTimesUnknown(
            f"{name}: nothing relates the stamps of its records to the run's clock"
        )
    return int(began_ms)


def _has_markers(facts: Mapping[str, Any]) -> bool:
    """Whether the topic had more offsets than records; False where that was not counted."""
    if (committed := facts.get("records")) is None:
        return False
    starts = facts.get("starts") or {}
    offsets = sum(end - starts.get(partition, 0) for partition, end in facts["ends"].items())
    return bool(offsets > committed + facts.get("uncommitted", 0))


def _reject_steps_back(found: AppendedRecords) -> None:
    change = Window.partitionBy("partition").orderBy("offset")
    back = F.lag("timestamp_ms").over(change) - F.col("timestamp_ms")
    farthest = found.records.select(back.alias("back")).agg(F.max("back")).first()
    assert farthest is not None
    if (farthest[0] or 0) > STEP_BACK_MS:
        raise AppendTimesUnknown(
            f"{found.name}: the stamps of a partition go back by {farthest[0]:,} ms, so a broker's "
            "clock was moved and times between records mean nothing"
        )
