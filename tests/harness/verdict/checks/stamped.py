"""A written run whose output has stamps: the sent records, the written ones, and their history.

A record is sent every 10 ms, with eight keys in turn; it is written 50 ms later, into the partition
of its key's number modulo four. At 10 s a fault is injected, at 12 s all tasks run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Experiment, Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.workloads.numbered import Numbered
from streamquake.harness.workloads.numbered.records import Record
from streamquake.reports.record.event import Action
from tests.fakes import TOPOLOGY
from tests.harness.histories import Story

BEGAN_MS = 1_767_225_600_000
WORKLOAD = Numbered(records=2000, rate_per_s=100, keys=8, payload_bytes=10)
PROMISE = JobPromise(
    outputs={"totals": Output(kafka="totals", compare=("amount", "checksum"), order="seq")},
    expected="SELECT key, seq, amount, checksum, status FROM sent",
)
FACTS = {"kind": "kafka", "uncommitted": 0, "stamped": "append", "began_ms": BEGAN_MS}
SQL = "CREATE TABLE t WITH ('connector' = 'kafka', 'sink.partitioner' = 'fixed')"
INJECTED_S, RUNNING_S, HEALED_S, ENDED_S = 10.0, 12.0, 12.5, 20.0


class OutputRecord(NamedTuple):
    """One record as it was written."""

    record: Record
    at_s: float
    partition: int
    message_key: str = ""
    """Another one than the record's key; empty where it is that key."""


def number(record: Record) -> int:
    """The number of a record's key."""
    return int(record.key.removeprefix("k-"))


def written_records() -> list[OutputRecord]:
    """All records, written without a delay."""
    return [
        OutputRecord(record, record.index / 100 + 0.05, number(record) % 4)
        for record in WORKLOAD.load_definition(seed=0).between(0, WORKLOAD.records)
    ]


def bucket_key(out: OutputRecord) -> str:
    """A message key of another column, whose values are keys that were sent too: four of the
    eight."""
    return f"k-{number(out.record) // 2:05d}"


def changed(change: Callable[[OutputRecord], Iterable[OutputRecord]]) -> list[OutputRecord]:
    """All written records with one change, in the order of their writes."""
    return sorted(
        (new for out in written_records() for new in change(out)), key=lambda out: out.at_s
    )


def loads(reported: Story, *, silent: tuple[float, float] = (0, 0)) -> Story:
    """Events of all sends, twice a second, except for a silence; one event after it has its
    records."""
    sent, since = 0, 0
    for half in range(1, 41):
        sent = half * 50
        if not silent[0] < half / 2 < silent[1]:
            reported.at(
                half / 2,
                Action.SENT,
                first=since,
                last=sent - 1,
                count=sent - since,
                status="acknowledged",
            )
            since = sent
    return reported.at(ENDED_S, Action.WORKLOAD_DONE, acknowledged=sent, failed=0, unknown=0)


def task(
    reported: Story, at_s: float, vertex: str, subtask: int, attempt: int, state: str
) -> Story:
    names = {"a": "Source: input", "b": "count -> totals: Writer -> totals: Committer"}
    return reported.at(
        at_s,
        Action.TASK_CHANGED,
        vertex=vertex,
        vertex_name=names[vertex],
        subtask=subtask,
        attempt=attempt,
        state=state,
        node=f"flink/taskmanager-{subtask}",
    )


def injected(reported: Story, at_s: float = INJECTED_S) -> Story:
    return reported.at(
        at_s,
        Action.FAULT_IN_EFFECT,
        step=0,
        nodes=["flink/taskmanager-1"],
        called_ns=round((at_s - 0.1) * 1e9),
        seen_ns=round(at_s * 1e9),
    )


def story(*, failed: tuple[tuple[str, int], ...] = (("b", 1),), **parts: Any) -> Story:
    """The usual run: subtask 1 of the sink's vertex fails, and runs again."""
    recorded = loads(Story(), **parts)
    for vertex in "ab":
        for subtask in range(4):
            task(recorded, 0.5, vertex, subtask, 0, "RUNNING")
    injected(recorded.checkpoint(1, 8.0, 8.2))
    for vertex, subtask in failed:
        task(recorded, 11.0, vertex, subtask, 1, "DEPLOYING")
        task(recorded, RUNNING_S, vertex, subtask, 1, "RUNNING")
    recorded.at(RUNNING_S, Action.JOB_RUNNING, job="j")
    return recorded.at(HEALED_S, Action.FAULT_HEALED, step=0).at(25.0, Action.DRAINED)


def judged_case(
    spark: SparkSession,
    data: Path,
    written: list[OutputRecord],
    reported: Story | None = None,
    *,
    sql: str = SQL,
    **facts: Any,
) -> JudgedRun:
    """The case of such a run; its output is stored in `data` as a run reads it."""
    stored = StoredOutput(path=data / "totals")
    ends = dict.fromkeys({*range(4), *(out.partition for out in written)}, 0)
    rows: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    for out in written:
        stamp = BEGAN_MS + round(out.at_s * 1000)
        row = (
            "totals",
            out.partition,
            ends[out.partition],
            stamp,
            out.message_key or out.record.key,
            out.record.value().decode(),
            True,
        )
        ends[out.partition] += 1
        for name, value in zip(_SCHEMA.names, row, strict=True):
            rows[name].append(value)
    stored.part("committed").mkdir(parents=True)
    pq.write_table(pa.table(rows, schema=_SCHEMA), str(stored.part("committed") / "part-0.parquet"))
    counted = {str(partition): end for partition, end in ends.items()}
    stored.finish({**FACTS, "ends": counted, "stable_ends": counted, **facts})
    experiment = Experiment(
        name="by-hand",
        topology=TOPOLOGY,
        job=Job(sql=sql, promise=PROMISE),
        workload=WORKLOAD,
    )
    return JudgedRun(
        experiment=experiment,
        history=(reported or story()).history(),
        data=data,
        metrics=data / "none",
        spark=lambda: spark,
    )


_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("committed", pa.bool_()),
    ]
)
