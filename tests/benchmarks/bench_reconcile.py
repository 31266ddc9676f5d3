"""The reconciliation beside other engines on the same files: time, CPU and memory, and its growth.

    python -m tests.benchmarks.bench_reconcile [--millions 1,10,50] [--rounds 3] [--engines A;B]
                                               [--planted N] [--folder FOLDER]

Every engine answers in a process of its own, in turn, and must give the planted counts. `start` is
until the engine is there (for Spark: its session), `first` and `second` are two answers of that
process, `CPU` is of the process and its children from beginning to end, `memory` what the largest
of them took. Spark gets a driver of 4 GiB. Where every hundredth record is `--planted` almost every
bucket differs, so that everything is grouped, on disk where memory does not do. DuckDB and Polars
come with `pip install 'streamquake[bench]'`; without them they are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import functions as F

from streamquake.harness.reconcile.spark_session import spark_session, stop_spark
from tests.benchmarks.reconcile_arms import ARMS, CLASSES

BYTES_EACH = 150
"""What a record needs on disk at most, files and what Spark spills."""
MEMORY_BYTES = 16 << 30
"""What Python may have in address space; an engine that needs more has failed."""
MODULES = {"duckdb": "duckdb", "duckdb, digest": "duckdb", "polars": "polars"}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One process: seconds, and the peak of its largest member in MB."""

    start_s: float
    first_s: float
    second_s: float
    cpu_s: float
    peak_mb: float


@dataclass(frozen=True, kw_only=True)
class Data:
    """What was sent and what was seen, as files, and how much of each anomaly is among it."""

    folder: Path
    records: int
    planted: int

    def make(self) -> None:
        """Write both sides inside Spark, as several files each. Raises OSError where the disk is
        too small for them and for what is done with them."""
        if shutil.disk_usage(self.folder).free < self.records * BYTES_EACH:
            gigabytes = self.records * BYTES_EACH / 1e9
            raise OSError(f"{self.folder}: {gigabytes:.1f} GB must be free; give another --folder")
        spark = spark_session("local[2]", small=self.records <= 2_000_000)
        step = self.records // self.planted
        index = F.col("id")
        sent = spark.range(self.records).select(
            "id",
            (index % 1000).cast("int").alias("key"),
            F.expr("id div 1000").alias("seq"),
            F.xxhash64("id").alias("checksum"),
        )
        odd = F.when(index % step == 2, F.col("checksum") + 1).otherwise(F.col("checksum"))
        copies = F.when(index % step == 0, 0).when(index % step == 1, 2).otherwise(1)
        seen = sent.withColumn("checksum", odd).where(copies > 0)
        twice = seen.where(copies == 2)
        phantoms = sent.where(index % step == 3)
        phantoms = phantoms.withColumn("seq", F.col("seq") + self.records)
        columns = ("key", "seq", "checksum")
        sent.select(*columns).write.parquet(f"{self.folder}/sent")
        whole = seen.unionByName(twice).unionByName(phantoms).select(*columns)
        whole.coalesce(8).write.parquet(f"{self.folder}/seen")
        stop_spark(spark)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--millions", default="1,10,50", help="records a side, in millions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--planted", type=int, default=100, help="of each: lost, duplicated, changed, phantom"
    )
    parser.add_argument("--engines", default=";".join(ARMS), help="separated by semicolons")
    parser.add_argument("--folder", help="where the files are made; a temporary one by default")
    requested = parser.parse_args()
    engines = [name for name in requested.engines.split(";") if _is_there(name)]
    medians: dict[str, list[tuple[float, float]]] = {}
    for millions in map(float, requested.millions.split(",")):
        with tempfile.TemporaryDirectory(prefix="bench-", dir=requested.folder) as folder:
            data = Data(
                folder=Path(folder), records=int(millions * 1_000_000), planted=requested.planted
            )
            data.make()
            for name, found in _measured(engines, data, requested.rounds).items():
                medians.setdefault(name, []).append((millions, _reported(name, data, found)))
    for name, points in medians.items():
        if len(points) > 1:
            (less, before), *_, (more, after) = points
            print(f"{name:20} {more / less:.0f} times the records: {after / before:.1f} times CPU")


def _is_there(name: str) -> bool:
    there = importlib.util.find_spec(MODULES.get(name, "pyarrow")) is not None
    if not there:
        print(f"{name:20} left out: pip install 'streamquake[bench]'")
    return there


def _measured(engines: Sequence[str], data: Data, rounds: int) -> dict[str, list[Measured]]:
    """Each engine once a round, so that what else the machine does falls on all alike."""
    found: dict[str, list[Measured]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name in engines:
            measured = _run(name, data)
            if measured is None:
                print(f"{name:20} {data.records:12,}  failed")
            else:
                found[name].append(measured)
    return {name: runs for name, runs in found.items() if runs}


def _run(name: str, data: Data) -> Measured | None:
    argv = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.reconcile_arms"]
    with subprocess.Popen(
        [*argv, name, f"{data.folder}/sent", f"{data.folder}/seen", str(data.records)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=_bounded,
    ) as process:
        assert process.stdout is not None
        message = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return None
    answer = json.loads(message.splitlines()[-1])
    planted = dict.fromkeys(CLASSES, data.planted)
    if answer["counts"] != planted:
        raise RuntimeError(f"{name} counted {answer['counts']}, planted were {planted}")
    return Measured(
        start_s=answer["start_s"],
        first_s=answer["first_s"],
        second_s=answer["second_s"],
        cpu_s=used.ru_utime + used.ru_stime,
        peak_mb=used.ru_maxrss / 1024,
    )


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _reported(name: str, data: Data, runs: Iterable[Measured]) -> float:
    """Print the medians of an engine; its CPU seconds."""
    by_name = {
        field: statistics.median(getattr(run, field) for run in runs)
        for field in Measured.__dataclass_fields__
    }
    parts = (
        f"{name:20} {data.records:12,}  start {by_name['start_s']:5.1f} s",
        f"first {by_name['first_s']:6.1f}  second {by_name['second_s']:6.1f}",
        f"{2 * data.records / by_name['second_s']:12,.0f} rows/s  CPU {by_name['cpu_s']:6.1f} s",
        f"memory {by_name['peak_mb']:7,.0f} MB  (load {os.getloadavg()[0]:.1f})",
    )
    print("  ".join(parts), flush=True)
    return float(by_name["cpu_s"])


if __name__ == "__main__":
    main()
