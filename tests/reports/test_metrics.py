"""Metrics: any thread may add samples, and the file is always complete."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamquake.reports.record.metrics import Metrics, Samples, by_series, read_metrics
from streamquake.reports.render.downsampling import MAX_POINTS, downsample, resample_to_grid


def test_samples_are_read_back_with_their_columns(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.parquet")
    metrics.add(1_500_000_000, "lag", "input", 12)
    metrics.add(2_500_000_000, "busy_ratio", "map", 0.5)
    metrics.flush()
    table = read_metrics(tmp_path / "metrics.parquet")
    assert table.to_pylist() == [
        {"at_s": 1.5, "series": "lag", "where": "input", "value": 12.0},
        {"at_s": 2.5, "series": "busy_ratio", "where": "map", "value": 0.5},
    ]
    assert [str(kind) for kind in table.schema.types] == ["double", "string", "string", "double"]


def test_every_flush_writes_a_complete_file_with_all_samples_so_far(tmp_path: Path) -> None:
    path = tmp_path / "metrics.parquet"
    metrics = Metrics(path)
    for count in (1, 2, 3):
        metrics.add(count, "lag", "input", count)
        metrics.flush()
        assert read_metrics(path).num_rows == count
    assert list(tmp_path.iterdir()) == [path]


def test_no_sample_is_lost_between_threads(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.parquet")

    def add(where: str) -> None:
        for number in range(500):
            metrics.add(number, "lag", where, number)
            if number % 100 == 0:
                metrics.flush()

    threads = [threading.Thread(target=add, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    metrics.flush()
    lines = by_series(read_metrics(tmp_path / "metrics.parquet"))["lag"]
    assert {where: len(samples.at_s) for where, samples in lines.items()} == dict.fromkeys(
        ("t0", "t1", "t2", "t3"), 500
    )


def test_a_duplicate_sample_counts_once(tmp_path: Path) -> None:
    """Otherwise it would count twice in the mean of a window. Two different values of one time are
    two samples."""
    path = tmp_path / "metrics.parquet"
    metrics = Metrics(path)
    for at_ns, value in ((3, 1), (1, 0), (3, 1), (2, 0), (3, 2)):
        metrics.add(at_ns * 10**9, "busy_ratio", "map", value)
    metrics.flush()
    table = read_metrics(path)
    assert table["value"].to_pylist() == [0, 0, 1, 2]
    assert table.schema.equals(pq.read_table(path).schema, check_metadata=True)
    assert by_series(table)["busy_ratio"]["map"].value.tolist() == [0, 0, 1, 2]

    doubled = pq.read_table(path)
    pq.write_table(pa.concat_tables([doubled, doubled]), path)
    assert read_metrics(path).equals(table)


def test_a_missing_file_has_no_samples(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "none.parquet").num_rows == 0
    assert by_series(read_metrics(tmp_path / "none.parquet")) == {}


def test_another_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "metrics.parquet"
    path.write_text("no parquet", encoding="utf-8")
    with pytest.raises(ValueError, match="not a metrics file"):
        read_metrics(path)
    pq.write_table(pa.table({"at_s": [1.0]}), path)
    with pytest.raises(ValueError, match="not a metrics file of schema 1"):
        read_metrics(path)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("at_s", pa.array([1.0, None]), "samples without a value"),
        ("value", pa.array([1, 2]), "other columns"),
        ("at_s", pa.array([1.0, float("nan")]), "samples whose time is not a finite number"),
        ("at_s", pa.array([1.0, float("inf")]), "samples whose time is not a finite number"),
        ("value", pa.array([1.0, float("nan")]), "value is not a finite number"),
        ("value", pa.array([-float("inf"), 1.0]), "value is not a finite number"),
    ],
)
def test_samples_with_a_wrong_type_time_or_value_are_rejected(
    tmp_path: Path, column: str, values: pa.Array, message: str
) -> None:
    metrics = Metrics(tmp_path / "m")
    for at_s in (1, 2):
        metrics.add(at_s * 10**9, "lag", "a", at_s)
    table = metrics.table()
    place = table.schema.get_field_index(column)
    changed = table.set_column(place, column, values).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, tmp_path / "m")

    with pytest.raises(ValueError, match=message):
        read_metrics(tmp_path / "m")


def test_a_value_that_is_not_finite_is_not_recorded(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "m")
    for at_s, value in enumerate((1.0, float("nan"), float("inf"), 2.0)):
        metrics.add(at_s * 10**9, "lag", "a", value)
    metrics.flush()

    assert read_metrics(tmp_path / "m")["value"].to_pylist() == [1.0, 2.0]


def test_samples_are_sorted_by_time_and_lines_by_name(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "m")
    for at_s, where in ((3, "b"), (1, "b"), (2, "a")):
        metrics.add(at_s * 10**9, "lag", where, at_s)
    lines = by_series(metrics.table())["lag"]
    assert list(lines) == ["a", "b"]
    assert lines["b"].at_s.tolist() == [1, 3]


def test_downsampling_keeps_ends_and_peaks() -> None:
    at_s = np.arange(100_000, dtype=float)
    value = np.ones(100_000)
    value[51_234], value[70_001] = 99, -5
    kept_s, kept = downsample(Samples(at_s=at_s, value=value))
    assert len(kept) <= MAX_POINTS + 2
    assert kept.max() == 99
    assert kept.min() == -5
    assert kept_s[0] == 0
    assert kept_s[-1] == 99_999


def test_a_grid_has_the_newest_sample_and_gaps_where_samples_are_missing() -> None:
    lines = {
        "a": Samples(at_s=np.array([0.0, 1.0, 2.0, 10.0]), value=np.array([0.1, 0.2, 0.3, 0.9])),
        "b": Samples(at_s=np.array([0.0]), value=np.array([0.5])),
    }
    grid_s, (a, b) = resample_to_grid(lines)
    assert grid_s[:4].tolist() == [0, 1, 2, 3]
    assert a[:5].tolist() == [0.1, 0.2, 0.3, 0.3, 0.3]
    assert np.isnan(a[6])
    assert a[10] == 0.9
    assert b[0] == 0.5
    assert np.isnan(b[4:]).all()
