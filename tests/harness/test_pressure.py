"""Back-pressure from samples: the levels and their limits, and no proof without samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.pressure import Level, is_proven, level_of, ratios, worst_vertex
from streamquake.reports.metrics import by_series, read_metrics
from tests.harness.checkpoint_story import press


@pytest.mark.parametrize(
    ("ratio", "level"),
    [(0.0, Level.OK), (0.10, Level.OK), (0.11, Level.LOW), (0.50, Level.LOW), (0.51, Level.HIGH)],
)
def test_the_limits_of_the_levels_are_flinks(ratio: float, level: Level) -> None:
    assert level_of(ratio) == level


def test_a_window_has_the_ratios_of_its_own_samples(tmp_path: Path) -> None:
    press(tmp_path, 0.6, until_s=10)
    series = by_series(read_metrics(tmp_path / "metrics.parquet"))

    found = ratios(series, "source", 2, 5)

    assert found is not None
    assert (found.samples, found.level) == (4, Level.HIGH)
    assert found.mean == pytest.approx(0.54)
    assert found.max == pytest.approx(0.6)
    assert worst_vertex(series, 2, 5, margin_s=0) == ("source", found)
    assert ratios(series, "source", 12, 15) is None
    assert ratios(series, "unknown", 2, 5) is None


def test_proof_needs_samples_within_two_seconds_of_the_window(tmp_path: Path) -> None:
    press(tmp_path, 0.6, until_s=10)
    series = by_series(read_metrics(tmp_path / "metrics.parquet"))

    assert is_proven(series, 5.2, 5.3)
    assert is_proven(series, 11.9, 12)
    assert not is_proven(series, 12.1, 13)
    assert not is_proven(series, 5.2, 5.3, ratio=0.61)
    assert not is_proven({}, 5.2, 5.3)
