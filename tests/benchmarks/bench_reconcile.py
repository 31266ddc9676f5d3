"""The reconciliation compared with other engines on the same files: time, CPU, memory, growth.

    python -m tests.benchmarks.bench_reconcile [--millions 1,10,50] [--rounds 3] [--engines A;B]
                                               [--planted N] [--folder FOLDER]

Each engine runs in a separate process, in turn, and must return the planted counts. `start` is
the time until the engine is ready (for Spark: its session), `first` and `second` are two
comparisons in that process, `CPU` is the total of the process and its children, `memory` the peak
of the largest of them. Spark has a driver of 4 GiB. If `--planted` is a hundredth of the records,
almost every bucket differs, so all records are grouped, on disk if memory does not suffice.
`pip install 'streamquake[bench]'` installs DuckDB and Polars; without them their arms are skipped.
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
"""Upper bound of a record's bytes on disk, in files and in what Spark spills."""
MEMORY_BYTES = 16 << 30
"""Limit of each process's address space; an engine that needs more fails."""
MODULES = {"duckdb": "duckdb", "duckdb, digest": "duckdb", "polars": "polars"}


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One process: seconds, and the peak memory of its largest member in MB."""

    start_s: float
    first_s: float
    second_s: float
    cpu_s: float
    peak_mb: float


@dataclass(frozen=True, kw_only=True)
class BenchmarkData:
    """The expected and the actual records as files, and the number of each planted anomaly."""

    folder: Path
    records: int
    planted: int

    def write(self) -> None:
        """Write both sides with Spark, as several files each. Raises OSError if the disk has no
        space for them and for the comparison."""
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
        checksum = F.when(index % step == 2, F.col("checksum") + 1).otherwise(F.col("checksum"))
        copies = F.when(index % step == 0, 0).when(index % step == 1, 2).otherwise(1)
        received = sent.withColumn("checksum", checksum).where(copies > 0)
        duplicates = received.where(copies == 2)
        phantoms = sent.where(index % step == 3)
        phantoms = phantoms.withColumn("seq", F.col("seq") + self.records)
        columns = ("key", "seq", "checksum")
        sent.select(*columns).write.parquet(f"{self.folder}/expected")
        actual = received.unionByName(duplicates).unionByName(phantoms).select(*columns)
        actual.coalesce(8).write.parquet(f"{self.folder}/actual")
        stop_spark(spark)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--millions", default="1,10,50", help="records per side, in millions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--planted", type=int, default=100, help="of each: lost, duplicated, changed, phantom"
    )
    parser.add_argument("--engines", default=";".join(ARMS), help="separated by semicolons")
    parser.add_argument(
        "--folder", help="parent folder of the files; by default the one for temporary files"
    )
    arguments = parser.parse_args()
    engines = [name for name in arguments.engines.split(";") if _is_installed(name)]
    medians: dict[str, list[tuple[float, float]]] = {}
    for millions in map(float, arguments.millions.split(",")):
        with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.folder) as folder:
            data = BenchmarkData(
                folder=Path(folder), records=int(millions * 1_000_000), planted=arguments.planted
            )
            data.write()
            for name, runs in _measure(engines, data, arguments.rounds).items():
                medians.setdefault(name, []).append((millions, _report(name, data, runs)))
    for name, points in medians.items():
        if len(points) > 1:
            (less, before), *_, (more, after) = points
            print(f"{name:20} {more / less:.0f} times the records: {after / before:.1f} times CPU")


def _is_installed(name: str) -> bool:
    installed = importlib.util.find_spec(MODULES.get(name, "pyarrow")) is not None
    if not installed:
        print(f"{name:20} skipped: pip install 'streamquake[bench]'")
    return installed


def _measure(
    engines: Sequence[str], data: BenchmarkData, rounds: int
) -> dict[str, list[Measurement]]:
    """Run each engine once per round, so that other load of the machine affects all equally."""
    measurements: dict[str, list[Measurement]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name in engines:
            measurement = _run(name, data)
            if measurement is None:
                print(f"{name:20} {data.records:12,}  failed")
            else:
                measurements[name].append(measurement)
    return {name: runs for name, runs in measurements.items() if runs}


def _run(name: str, data: BenchmarkData) -> Measurement | None:
    argv = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.reconcile_arms"]
    with subprocess.Popen(
        [*argv, name, f"{data.folder}/expected", f"{data.folder}/actual", str(data.records)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=_limit_memory,
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return None
    answer = json.loads(output.splitlines()[-1])
    planted = dict.fromkeys(CLASSES, data.planted)
    if answer["counts"] != planted:
        raise RuntimeError(f"{name} counted {answer['counts']}, planted were {planted}")
    return Measurement(
        start_s=answer["start_s"],
        first_s=answer["first_s"],
        second_s=answer["second_s"],
        cpu_s=used.ru_utime + used.ru_stime,
        peak_mb=used.ru_maxrss / 1024,
    )


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _report(name: str, data: BenchmarkData, runs: Iterable[Measurement]) -> float:
    """Print the medians of an engine. Returns its CPU seconds."""
    by_name = {
        field: statistics.median(getattr(run, field) for run in runs)
        for field in Measurement.__dataclass_fields__
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
