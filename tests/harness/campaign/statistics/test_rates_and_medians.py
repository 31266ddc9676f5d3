"""Rates and medians with their intervals, compared with published values."""

from __future__ import annotations

import random

import pytest

from streamquake.harness.campaign.statistics.medians import Median
from streamquake.harness.campaign.statistics.rates import rate_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [(0, 5, 0.0, 0.434), (5, 5, 0.566, 1.0), (3, 5, 0.231, 0.882), (81, 263, 0.255, 0.366)],
)
def test_a_rate_has_wilsons_interval(count: int, n: int, low: float, high: float) -> None:
    """81 of 263 is the example of Newcombe (1998), Statistics in Medicine 17, method 3."""
    rate = rate_of(count, n)
    assert (round(rate.low, 3), round(rate.high, 3)) == (low, high)


def test_a_rate_is_shown_in_percent() -> None:
    assert str(rate_of(3, 5)) == "3 of 5 (23% to 88%)"
    with pytest.raises(ValueError, match="a rate of 0 runs"):
        rate_of(0, 0)


@pytest.mark.parametrize(
    ("n", "low", "high", "confidence"),
    [
        (1, 0, 0, 0.0),
        (3, 0, 2, 0.75),
        (5, 0, 4, 0.9375),
        (6, 0, 5, 0.96875),
        (9, 1, 7, 0.9609375),
        (20, 5, 14, 0.9586105),
    ],
)
def test_a_median_has_the_interval_of_its_ranks(
    n: int, low: int, high: int, confidence: float
) -> None:
    values = list(range(n))
    random.Random(1).shuffle(values)
    found = Median.of(values)
    assert (found.n, found.median) == (n, (n - 1) / 2)
    assert (found.low, found.high) == (low, high)
    assert found.confidence == pytest.approx(confidence)


def test_the_interval_contains_the_true_median_as_often_as_it_says() -> None:
    draw = random.Random(7)
    intervals = [Median.of([draw.expovariate(1) for _ in range(8)]) for _ in range(4000)]
    hits = sum(each.low <= 0.6931 <= each.high for each in intervals)
    assert hits / len(intervals) == pytest.approx(intervals[0].confidence, abs=0.01)


def test_no_values_have_no_median() -> None:
    with pytest.raises(ValueError, match="no values"):
        Median.of([])
