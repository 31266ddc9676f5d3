"""Metrics: samples of figures over time, stored beside the history as one Parquet file.

A sample is (at_s, series, where, value): seconds since the run began, the name of the series with
its unit (`lag`, `sent_per_s`, `busy_ratio`), the node, vertex, topic or output it belongs to, and
the value. Every write replaces the whole file atomically, so after a crash the last complete file
is left.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from streamquake.reports.record.atomic_files import atomic_replacement

SCHEMA_VERSION = b"1"
SCHEMA = pa.schema(
    [
        ("at_s", pa.float64()),
        ("series", pa.string()),
        ("where", pa.string()),
        ("value", pa.float64()),
    ],
    metadata={b"streamquake.schema": SCHEMA_VERSION},
)

HOLE_S = 3.0
"""Samples are missing where two samples of a series are further apart than this, in seconds. They
are usually one second apart, and rarely two and a half. The values within such a hole are not
known."""


class Metrics:
    """Samples of one run; any thread may add."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._adding = threading.Lock()
        self._flushing = threading.Lock()
        self._at_s = array("d")
        self._value = array("d")
        self._series: list[str] = []
        self._where: list[str] = []

    def add(self, at_ns: int, series: str, where: str, value: float) -> None:
        """Add one sample, taken at `at_ns` on the run's clock. A value that is not finite is
        ignored."""
        if not isfinite(value):
            return
        with self._adding:
            self._at_s.append(at_ns / 1e9)
            self._series.append(series)
            self._where.append(where)
            self._value.append(value)

    def flush(self) -> None:
        """Write every sample so far. The file is replaced atomically."""
        with self._flushing:
            table = self.table()
            with atomic_replacement(self._path) as draft:
                pq.write_table(table, draft)

    def table(self) -> pa.Table:
        """Every sample so far."""
        with self._adding:
            columns = [
                pa.array(np.array(self._at_s)),
                pa.array(self._series, pa.string()),
                pa.array(self._where, pa.string()),
                pa.array(np.array(self._value)),
            ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)


def read_metrics(path: Path) -> pa.Table:
    """The samples of a run in order of time, columns at_s, series, where, value; empty where there
    is no file. A duplicate of a sample is dropped, since the mean of a window would count it twice.

    Raises ValueError when the file is not a metrics file of this schema.
    """
    if not path.exists():
        return SCHEMA.empty_table()
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a metrics file: {error}") from error
    if (table.schema.metadata or {}).get(b"streamquake.schema") != SCHEMA_VERSION:
        raise ValueError(f"{path}: not a metrics file of schema {SCHEMA_VERSION.decode()}")
    if not table.schema.equals(SCHEMA) or any(column.null_count for column in table.columns):
        raise ValueError(f"{path}: not a metrics file: other columns, or samples without a value")
    if not np.isfinite(table["at_s"].to_numpy()).all():
        raise ValueError(f"{path}: not a metrics file: samples whose time is not a finite number")
    # `Metrics.add` never keeps such a value. NaN is never above a limit, so a check would miss it.
    if not np.isfinite(table["value"].to_numpy()).all():
        raise ValueError(f"{path}: not a metrics file: samples whose value is not a finite number")
    samples = table.group_by(SCHEMA.names).aggregate([]).cast(SCHEMA)
    return samples.sort_by([(name, "ascending") for name in SCHEMA.names])


@dataclass(frozen=True, kw_only=True)
class Samples:
    """One line of a chart: the samples of one series at one place, by time."""

    at_s: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]


def by_series(table: pa.Table) -> Mapping[str, Mapping[str, Samples]]:
    """series -> where -> samples in order of time; series and places in order of their names."""
    grouped = (
        table.sort_by("at_s")
        .group_by(["series", "where"], use_threads=False)
        .aggregate([("at_s", "list"), ("value", "list")])
        .sort_by([("series", "ascending"), ("where", "ascending")])
    )
    found: dict[str, dict[str, Samples]] = {}
    for row in grouped.to_pylist():
        samples = Samples(at_s=np.array(row["at_s_list"]), value=np.array(row["value_list"]))
        found.setdefault(row["series"], {})[row["where"]] = samples
    return found
