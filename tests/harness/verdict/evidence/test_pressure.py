"""Back-pressure from samples: the levels and their limits, and no proof without samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.verdict.evidence.pressure import (
    BACK_PRESSURED,
    PressureLevel,
    level_of,
    max_at_most,
    ratios,
    worst_at_most,
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

    found = ratios(series, "source", 2, 5)

    assert found is not None
    assert (found.samples, found.level) == (4, PressureLevel.HIGH)
    assert found.mean == pytest.approx(0.54)
    assert found.max == pytest.approx(0.6)
    assert worst_vertex(series, 2, 5, margin_s=0) == ("source", found)
    assert ratios(series, "source", 12, 15) is None
    assert ratios(series, "unknown", 2, 5) is None
    assert ratios(series, "source", 2, 5, "unknown_ms_per_s") is None
    assert ratios({BACK_PRESSURED: series[BACK_PRESSURED]}, "source", 2, 5) is None


def test_in_a_hole_of_the_samples_all_of_the_time_may_be_spent_waiting(tmp_path: Path) -> None:
    press(tmp_path, 0.5, until_s=10)
    series = by_series(read_metrics(tmp_path / "metrics.parquet"))

    assert max_at_most(series, "source", 0, 10) == pytest.approx(0.5)
    assert max_at_most(series, "source", 0, 13) == pytest.approx(0.5), "three seconds are usual"
    assert max_at_most(series, "source", 0, 14) == pytest.approx((5 + 4) / 14)
    assert max_at_most(series, "unknown", 0, 10) == 1.0
    assert max_at_most(series, "source", 20, 30) == 1.0


def test_a_window_is_widened_by_two_seconds_and_knows_nothing_beyond(tmp_path: Path) -> None:
    press(tmp_path, 0.6, until_s=10)
    series = by_series(read_metrics(tmp_path / "metrics.parquet"))

    assert worst_vertex(series, 5.2, 5.3) is not None
    assert worst_vertex(series, 11.9, 12) is not None
    assert worst_vertex(series, 12.1, 13) is None
    assert worst_vertex({}, 5.2, 5.3) is None


def test_the_hardest_pressed_vertex_is_the_worst_though_others_are_pressed_on_average(
    tmp_path: Path,
) -> None:
    metrics = Metrics(tmp_path / "metrics.parquet")
    for name, mean, worst in (("steady", 500, 500), ("keyed", 100, 900)):
        metrics.add(10**9, BACK_PRESSURED, name, mean)
        metrics.add(10**9, f"{BACK_PRESSURED}_max", name, worst)
    metrics.flush()
    found = worst_vertex(by_series(read_metrics(tmp_path / "metrics.parquet")), 1, 1)
    assert found is not None
    assert (found[0], found[1].max) == ("keyed", 0.9)


def test_the_most_that_holes_may_hide_is_asked_of_what_was_sampled_then(tmp_path: Path) -> None:
    press(tmp_path, 0.2, from_s=2, until_s=40, missed=range(11, 20))
    series = dict(by_series(read_metrics(tmp_path / "metrics.parquet")))
    highest = series[f"{BACK_PRESSURED}_max"]
    # A vertex of a job that another one replaced.
    series[f"{BACK_PRESSURED}_max"] = {**highest, "former": until(highest["source"], 8.0)}

    assert worst_at_most(series, 25, 35) == pytest.approx(0.2), "a vertex that is no more"
    assert worst_at_most(series, 0.5, 1.5) == pytest.approx(0.2), "no run begins before zero"
    assert worst_at_most(series, 10, 20) == pytest.approx(0.2 * 4 / 14 + 10 / 14)
    assert worst_at_most(series, 50, 55) == 1.0


def until(samples: Samples, end_s: float) -> Samples:
    kept = samples.at_s <= end_s
    return Samples(at_s=samples.at_s[kept], value=samples.value[kept])
