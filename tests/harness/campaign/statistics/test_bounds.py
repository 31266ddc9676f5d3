"""Whether a bound is kept by more than chance."""

from __future__ import annotations

import random

import pytest

from streamquake.harness.campaign.statistics.bounds import (
    LEVEL,
    quotient_test,
    slope_test,
    threshold,
    value_test,
)


@pytest.mark.parametrize(
    ("values", "least", "kept", "broken"),
    [
        ([3, 4, 5, 6, 7], 3, 1 / 32, 1.0),
        ([3, 4, 5, 6, 7], 8, 1.0, 1 / 32),
        ([3, 4, 5, 6, 7], 4, 6 / 32, 31 / 32),
        ([3], 3, 0.5, 1.0),
        ([1, 9], 5, 0.75, 0.75),
    ],
)
def test_the_sign_test_of_a_median(
    values: list[float], least: float, kept: float, broken: float
) -> None:
    found = value_test(values, least)
    assert found.kept == pytest.approx(kept)
    assert found.broken == pytest.approx(broken)
    assert found.p == min(found.kept, found.broken)


def test_the_test_of_a_quotient_is_of_the_ranks() -> None:
    small, large = [1.0, 1.1, 1.2, 1.3, 1.4], [10.0, 11.0, 12.0, 13.0, 14.5]
    for least, kept in ((5, 1 / 252), (7, 1 / 252)):
        assert quotient_test(large, small, least).kept == pytest.approx(kept)
    assert quotient_test(large, small, 10).kept > LEVEL, "the groups overlap at ten times"
    assert quotient_test(large, small, 15).broken == pytest.approx(1 / 252)
    assert quotient_test([0, 0], [0, 0], 2).p == 1.0
    assert quotient_test([5], [1], 2).p == pytest.approx(0.5)


def test_the_number_of_runs_that_would_tell_grows_as_the_effect_shrinks() -> None:
    clear = value_test([1, 2, 3, 4, 5, 6, 7, 0], 1)
    weak = value_test([1, 2, 3, 4, 5, 0, 0, 0], 1)
    assert clear.needed is not None
    assert weak.needed is not None
    assert 5 <= clear.needed < weak.needed
    assert value_test([1, 9], 5).needed is None, "no direction is seen"
    assert quotient_test([1, 2, 3], [1, 2, 3], 1).needed is None


def test_the_needed_number_of_runs_mostly_tells() -> None:
    """Seven of eight values are above the bound: with so many runs, most samples show it."""
    needed = value_test([1] * 7 + [0], 1).needed
    assert needed is not None
    draw = random.Random(1)
    samples = [[int(draw.random() < 7 / 8) for _ in range(needed)] for _ in range(200)]
    shown = sum(value_test(sample, 1).kept <= LEVEL for sample in samples)
    assert 0.65 < shown / 200 < 0.99


def test_the_threshold_keeps_the_share_of_false_findings() -> None:
    assert threshold([]) == 0.0
    assert threshold([0.2, 0.5]) == 0.0
    assert threshold([0.03]) == 0.03
    assert threshold([0.03] + [0.9] * 9) == 0.0, "one of ten at three percent may be chance"
    assert threshold([0.03] * 9 + [0.9]) == 0.03
    draw = random.Random(1)
    chance = [threshold([draw.random() for _ in range(50)]) > 0 for _ in range(400)]
    assert sum(chance) / 400 < 2 * LEVEL


def test_a_slope_within_its_bounds() -> None:
    exact = slope_test([(1, 2), (2, 4), (3, 6), (4, 8)], 1.5, 2.5)
    assert exact.slope == pytest.approx(2)
    assert exact.low == pytest.approx(2)
    assert exact.bound.kept < 0.001
    assert exact.bound.broken > 0.999

    noisy = slope_test([(1, 2), (2, 5), (3, 5), (4, 9)], 1.5, 2.5)
    assert noisy.low < 1.5 < noisy.slope < 2.5 < noisy.high
    assert min(noisy.bound.kept, noisy.bound.broken) > LEVEL

    steep = slope_test([(1, 2), (2, 4), (3, 6), (4, 8.1)], None, 1.5)
    assert steep.bound.broken < 0.01
    flat = slope_test([(1, 2), (2, 4), (3, 6), (4, 8.1)], 2.5, None)
    assert flat.bound.broken < 0.01


@pytest.mark.parametrize("points", [[(1, 2), (2, 4)], [(1, 2), (1, 3), (1, 4)]])
def test_a_slope_needs_three_points_with_several_x(points: list[tuple[float, float]]) -> None:
    with pytest.raises(ValueError, match="needs 3 points, and several x"):
        slope_test(points, 1, None)
