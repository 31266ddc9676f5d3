"""The smallest slowdown that a test would have found in the runs that there are."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from streamquake.harness.campaign.statistics.ranks import p_of_ranks

_ABOVE = 1 + 1e-9
"""Values that are equal count half in the test."""
_APART = 1e-13


def smallest_slowdown(before: Sequence[float], now: Sequence[float], level: float) -> float | None:
    """By which share of the median before the figure had to be larger for the test to find it at
    `level`, had all values of now been larger by the same factor; None where no factor is enough.
    All values are above 0 and finite."""
    before, now = _apart(before), _apart(now)
    # The ranks change only where a value of now passes one of before.
    ratios = np.divide.outer(before, now).ravel() * _ABOVE
    factors = np.unique(np.maximum([1.0, *ratios], 1.0))

    def is_found(factor: float) -> bool:
        slower = [value * factor for value in now]
        is_longer = statistics.median(slower) > statistics.median(before)
        return is_longer and p_of_ranks(before, slower, "two-sided") <= level

    if not is_found(float(factors[-1])):
        return None
    # Each larger factor is found more clearly.
    first = bisect_left(range(len(factors)), True, key=lambda each: is_found(float(factors[each])))
    return float(factors[first]) * statistics.median(now) / statistics.median(before) - 1


def _apart(values: Sequence[float]) -> list[float]:
    """Equal values of one group made different: this changes no pair of the two groups, and the
    test needs no permutations."""
    return [value * (1 + rank * _APART) for rank, value in enumerate(sorted(values))]
