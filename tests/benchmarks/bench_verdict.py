"""The time of a verdict: judging a synthetic record with a topic and a folder of the same rows.

    python -m tests.benchmarks.bench_verdict [--records 125000,500000] [--rounds 3]
                                             [--rehearse]

Each output has that number of records. Every size is judged clean, and with one anomaly of each
class in both outputs; both must have the planted counts. `first` is the first verdict of a session,
`later` the median of the others, in wall seconds and in CPU seconds of this process, of the
session's virtual machine and of its Python workers.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.spark_session import spark_session, stop_spark
from streamquake.harness.verdict.checks.exactly_once import ExactlyOnce
from streamquake.harness.verdict.rehearsal import rehearse
from streamquake.harness.workloads.numbered import Numbered
from streamquake.reports.record.event import Action
from tests.harness.histories import Story

EXPERIMENT = "kill-taskmanager-mid-checkpoint"
PARTITIONS = 4
CLASSES = ("lost", "duplicated", "changed", "phantom", "reordered", "malformed")
TICKS = os.sysconf("SC_CLK_TCK")
PLACES = {
    "totals": (("partition", pa.int32()), ("offset", pa.int64())),
    "totals-files": (("file", pa.string()), ("position", pa.int64())),
}
"""The columns of a record's place in each output."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The time of one verdict, in wall and in CPU seconds."""

    wall_s: float
    cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", default="125000,500000", help="records of each output")
    parser.add_argument("--rounds", type=int, default=3, help="later verdicts of a session")
    parser.add_argument("--rehearse", action="store_true", help="rehearse before, as a run does")
    arguments = parser.parse_args()
    for records in map(int, arguments.records.split(",")):
        for planted in (0, 1):
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                first, *later = _measure(Path(folder), records, planted, arguments)
            print(
                f"2 x {records:>9,} records, {planted} of each class: "
                f"first {first.wall_s:5.1f} s {first.cpu_s:5.1f} CPU-s, "
                f"later {statistics.median(cost.wall_s for cost in later):5.1f} s "
                f"{statistics.median(cost.cpu_s for cost in later):5.1f} CPU-s"
            )


def _measure(
    folder: Path, records: int, planted: int, arguments: argparse.Namespace
) -> Iterator[Cost]:
    """The cost of each verdict on one record, in a new session."""
    experiment = load_experiment(EXPERIMENT, sets=[f"workload.numbered.records={records}"], seed=1)
    _write_outputs(folder, experiment, planted)
    spark = spark_session("local[2]")
    if arguments.rehearse:
        rehearse(experiment, spark)
    for _ in range(arguments.rounds + 1):
        before, cpu_before = time.monotonic(), _cpu_s(spark)
        _judge(folder, experiment, records, planted, spark)
        yield Cost(wall_s=time.monotonic() - before, cpu_s=_cpu_s(spark) - cpu_before)
    stop_spark(spark)


def _judge(
    folder: Path, experiment: Experiment, records: int, planted: int, spark: SparkSession
) -> None:
    """Judge the record. Raises RuntimeError for other counts than the planted ones."""
    story = Story().sent(1, records)
    story.at(3, Action.WORKLOAD_DONE, acknowledged=records, failed=0, unknown=0)
    case = JudgedRun(
        experiment=experiment,
        history=story.at(4, Action.DRAINED).history(),
        data=folder,
        metrics=folder / "none",
        spark=lambda: spark,
    )
    result = ExactlyOnce().check(case)
    # A malformed record is a phantom too, and the record that it replaced is lost.
    twice = dict.fromkeys(("lost", "phantom"), 2)
    expected: dict[str, int | None] = {
        f"{output}.{name}": planted * twice.get(name, 1) for output in PLACES for name in CLASSES
    }
    expected["totals-files.reordered"] = None  # files have no order of arrival
    counts = {name: result.counts[name] for name in expected}
    if counts != expected:
        raise RuntimeError(f"counted {counts}, planted were {expected}: {result.summary}")


def _write_outputs(folder: Path, experiment: Experiment, planted: int) -> None:
    lanes = _lanes(experiment)
    if planted:
        _plant(lanes)
    for name, (lane, position) in PLACES.items():
        _write_output(StoredOutput(path=folder / name), lanes, lane, position)


def _lanes(experiment: Experiment) -> list[list[str]]:
    """The correct rows of the job, by partition."""
    workload = experiment.workload
    assert isinstance(workload, Numbered)
    totals: dict[str, int] = defaultdict(int)
    lanes: list[list[str]] = [[] for _ in range(PARTITIONS)]
    for record in workload.load_definition(experiment.seed).between(0, workload.records):
        totals[record.key] += record.amount
        lanes[int(record.key[2:]) % PARTITIONS].append(
            f'{{"key":"{record.key}","seq":{record.seq},"total":{totals[record.key]},'
            f'"records":{record.seq + 1}}}'
        )
    return lanes


def _plant(lanes: list[list[str]]) -> None:
    """One anomaly of each class."""
    middle = len(lanes[0]) // 2
    del lanes[0][middle]
    lanes[1].insert(middle + 1, lanes[1][middle])
    lanes[2][middle] = lanes[2][middle].replace('"total":', '"total":1')
    lanes[3].insert(middle, '{"key":"none","seq":1,"total":1,"records":1}')
    key = lanes[3][0][:16]
    first, second, *_ = (n for n, row in enumerate(lanes[3]) if row.startswith(key))
    lanes[3][first], lanes[3][second] = lanes[3][second], lanes[3][first]
    lanes[2][0] = '{"key":'


def _write_output(
    into: StoredOutput,
    lanes: list[list[str]],
    lane: tuple[str, pa.DataType],
    position: tuple[str, pa.DataType],
) -> None:
    """Store rows as a run reads them: partitions of a topic, or files of a folder."""
    part = into.part("committed" if lane[0] == "partition" else "json")
    part.mkdir(parents=True)
    for number, rows in enumerate(lanes):
        count = len(rows)
        columns = {
            "value": pa.array(rows),
            position[0]: pa.array(range(count), position[1]),
        }
        if lane[0] == "partition":
            columns[lane[0]] = pa.array([number] * count, lane[1])
            columns |= {
                "topic": pa.array(["totals"] * count),
                "timestamp_ms": pa.array([0] * count, pa.int64()),
                "key": pa.nulls(count, pa.string()),
                "committed": pa.array([True] * count),
                "appended": pa.array([True] * count),
            }
        else:
            columns[lane[0]] = pa.array([f"part-{number}"] * count, lane[1])
        pq.write_table(pa.table(columns), str(part / f"part-{number}.parquet"))
    ends = {str(number): len(rows) for number, rows in enumerate(lanes)}
    records = sum(ends.values())
    if lane[0] == "partition":
        into.finish(
            {
                "kind": "kafka",
                "records": records,
                "uncommitted": 0,
                "ends": ends,
                "stable_ends": ends,
                "stamped": "append",
                "began_ms": 0,
            }
        )
    else:
        into.finish({"kind": "files", "records": records, "pending_files": 0})


def _cpu_s(spark: SparkSession) -> float:
    """CPU seconds of this process, of the session's virtual machine and of its Python workers until
    now."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + _ticks_of(gateway.proc.pid) / TICKS


def _ticks_of(pid: int) -> int:
    """Clock ticks of a process and of all its descendants, also of those that have ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:  # it has just ended, so its ticks are in those of its parent
        return 0
    fields = stat.rpartition(")")[2].split()
    children: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError):  # a thread that has just ended
            children.update(map(int, task.read_text(encoding="ascii").split()))
    return sum(map(int, fields[11:15])) + sum(map(_ticks_of, children))


if __name__ == "__main__":
    main()
