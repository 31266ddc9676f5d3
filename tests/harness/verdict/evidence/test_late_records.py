"""How many records arrived too late, by counters that each attempt resets."""

from __future__ import annotations

from pathlib import Path

from streamquake.harness.verdict.evidence.late_records import SERIES, late_dropped
from streamquake.reports.record.metrics import Metrics


def test_counters_are_summed_over_attempts_and_operators(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.parquet")
    for where, values in {"windows/0": (0, 3, 5, 2, 2, 4), "windows/1": (1, 1)}.items():
        for at_s, value in enumerate(values):
            metrics.add(at_s * 10**9, SERIES, where, value)
    metrics.add(10**9, "lag", "input", 70)
    metrics.flush()
    assert late_dropped(tmp_path / "metrics.parquet") == 9 + 1


def test_where_nothing_was_counted_nothing_is_known(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.parquet")
    metrics.add(10**9, "lag", "input", 70)
    metrics.flush()
    assert late_dropped(tmp_path / "metrics.parquet") is None
