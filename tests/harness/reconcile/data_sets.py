"""Small data sets written to disk in each format, and their comparison."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.compare import compare
from streamquake.harness.reconcile.comparison import ComparisonRequest, DataComparison, Side
from streamquake.harness.reconcile.reading.source import source_of

Rows = Sequence[dict[str, Any]]
FORMATS = ("json", "csv", "parquet")


def write_rows(path: Path, rows: Rows) -> Path:
    """Write rows in the format of the path's suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    return path


def comparison_of(
    spark: SparkSession,
    expected: Path | str,
    actual: Path | str | tuple[str, ...],
    key: str = "id",
    *,
    order: str | None = None,
    ack: str | None = None,
    retracts: str | None = None,
    upsert: bool = False,
    also: tuple[str, ...] = (),
    **options: Any,
) -> DataComparison:
    """The comparison of two sources. `options` are for both sides, or for one as `actual_…`."""
    shared: dict[str, Any] = {
        name: text for name, text in options.items() if not name.startswith("actual_")
    }
    actual_only: dict[str, Any] = {
        name.removeprefix("actual_"): text
        for name, text in options.items()
        if name.startswith("actual_")
    }
    uris = actual if isinstance(actual, tuple) else (str(actual),)
    request = ComparisonRequest(
        expected=Side(name="expected", uris=(str(expected),), **{"key": key, **shared}),
        actual=Side(name="actual", uris=uris, **{"key": key, **shared, **actual_only}),
        order=order,
        ack=ack,
        retracts=retracts,
        upsert=upsert,
        also=also,
    )
    expected_source = source_of(request.expected.uris, "--expected")
    actual_source = source_of(request.actual.uris, "--actual")
    for side in (expected_source, actual_source):
        side.inspect()
    return compare(spark, request, expected_source, actual_source, lambda line: None)


def nonzero_counts(comparison: DataComparison) -> dict[str, int | None]:
    """The counts of the classes whose count is not zero, None where a class was not judged."""
    totals = ("expected", "actual")
    return {
        name: count
        for name, count in comparison.counts.items()
        if name not in totals and count != 0
    }
