"""Back-pressure from samples: the levels and their limits, and no proof without samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.verdict.evidence.pressure import (
    BACK_PRESSURED,
    PressureLevel,
    level_of,
    max_upper_bound,
    ratios_of,
    worst_upper_bound,
    worst_vertex,
)
from streamquake.reports.record.metrics import Metrics, Samples, by_series, read_metrics
from tests.harness.verdict.checkpoint_story import press


@pytest.mark.parametrize(
    ("ratio", "level"),
    [
        (0.0, PressureLevel.OK),
        (0.10, PressureLevel.OK),
        (0.11, PressureLevel.LOW),
        (0.50, PressureLevel.LOW),
        (0.51, PressureLevel.HIGH),
    ],
)
def test_the_limits_of_the_levels_are_flinks(ratio: float, level: PressureLevel) -> None:
    assert level_of(ratio) == level


def test_a_window_has_the_ratios_of_its_own_samples(tmp_path: Path) -> None:
    press(tmp_path, 0.6, until_s=10)
    series = by_series(read_metrics(tmp_path / "metrics.parquet"))

    found = ratios_of(series, "source", 2, 5)

    assert found is not None
    assert (found.samples, found.level) == (4, PressureLevel.HIGH)
    assert found.mean == pytest.approx(0.54)
    assert found.max == pytest.approx(0.6)
    assert worst_vertex(series, 2, 5, margin_s=0) == ("source", found.max)
    assert ratios_of(series, "source", 12, 15) is None
    assert ratios_of(series, "unknown", 2, 5) is None
    assert ratios_of(series, "source", 2, 5, "unknown_ms_per_s") is None
    assert ratios_of({BACK_PRESSURED: series[BACK_PRESSURED]}, "source", 2, 5) is None


def test_a_vertex_may_be_back_pressured_throughout_a_hole_of_the_samples(tmp_path: Path) -> None:
    press(tmp_path, 0.5, until_s=10)
    series = by_series(read_metrics(tmp_path / "metrics.parquet"))

    assert max_upper_bound(series, "source", 0, 10) == pytest.approx(0.5)
    assert max_upper_bound(series, "source", 0, 13) == pytest.approx(0.5), "three seconds are usual"
    assert max_upper_bound(series, "source", 0, 14) == pytest.approx((5 + 4) / 14)
    assert max_upper_bound(series, "unknown", 0, 10) == 1.0
    assert max_upper_bound(series, "source", 20, 30) == 1.0


def test_a_window_is_widened_by_two_seconds_and_ignores_later_samples(tmp_path: Path) -> None:
    press(tmp_path, 0.6, until_s=10)
    series = by_series(read_metrics(tmp_path / "metrics.parquet"))

    assert worst_vertex(series, 5.2, 5.3) is not None
    assert worst_vertex(series, 11.9, 12) is not None
    assert worst_vertex(series, 12.1, 13) is None
    assert worst_vertex({}, 5.2, 5.3) is None


def test_the_vertex_with_the_worst_subtask_is_the_worst_whatever_the_averages(
    tmp_path: Path,
) -> None:
    metrics = Metrics(tmp_path / "metrics.parquet")
    for name, mean, worst in (("steady", 500, 500), ("keyed", 100, 900)):
        metrics.add(10**9, BACK_PRESSURED, name, mean)
        metrics.add(10**9, f"{BACK_PRESSURED}_max", name, worst)
    metrics.flush()
    found = worst_vertex(by_series(read_metrics(tmp_path / "metrics.parquet")), 1, 1)
    assert found == ("keyed", 0.9)


def test_a_vertex_is_not_known_to_be_back_pressured_in_a_hole_of_its_samples(
    tmp_path: Path,
) -> None:
    press(tmp_path, 0.6, until_s=40, missed=range(11, 20))
    series = by_series(read_metrics(tmp_path / "metrics.parquet"))

    def proven(start_s: float, end_s: float) -> float:
        worst = worst_vertex(series, start_s, end_s)
        assert worst is not None
        return worst[1]

    assert proven(22, 38) == pytest.approx(0.6)
    assert proven(0, 8) == pytest.approx(0.6), "no run begins before zero"
    assert proven(7, 23) == pytest.approx(0.6 * 10 / 20)
    assert proven(39, 50) == pytest.approx(0.6 * 3 / 15)


def test_the_upper_bound_counts_vertices_sampled_in_the_window(tmp_path: Path) -> None:
    press(tmp_path, 0.2, from_s=2, until_s=40, missed=range(11, 20))
    series = dict(by_series(read_metrics(tmp_path / "metrics.parquet")))
    highest = series[f"{BACK_PRESSURED}_max"]
    # A vertex of a job that another one replaced.
    series[f"{BACK_PRESSURED}_max"] = {**highest, "former": until(highest["source"], 8.0)}

    assert worst_upper_bound(series, 25, 35) == pytest.approx(0.2), "a removed vertex"
    assert worst_upper_bound(series, 0.5, 1.5) == pytest.approx(0.2), "no run begins before zero"
    assert worst_upper_bound(series, 10, 20) == pytest.approx(0.2 * 4 / 14 + 10 / 14)
    assert worst_upper_bound(series, 50, 55) == 1.0


def until(samples: Samples, end_s: float) -> Samples:
    kept = samples.at_s <= end_s
    return Samples(at_s=samples.at_s[kept], value=samples.value[kept])
