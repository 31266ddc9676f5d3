"""The p-value of Mann-Whitney's test, exact for few values.

https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.mannwhitneyu.html
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Literal

import numpy as np
from scipy.stats import PermutationMethod, mannwhitneyu

Alternative = Literal["two-sided", "greater", "less"]
FEW = 8
"""Up to so many values of one group the normal approximation is not accurate enough."""
RESAMPLES = 9_999


def p_of_ranks(first: Sequence[float], second: Sequence[float], alternative: Alternative) -> float:
    """How probable values like these are if both groups are alike: by all permutations, or many of
    them, where a group has few values and some are equal. Infinite values are the largest."""
    values = [*first, *second]
    if len(set(values)) == 1:
        return 1.0
    if min(len(first), len(second)) == 1:
        return _p_of_one(first, second, alternative)
    ranks = np.unique(np.array(values, float), return_inverse=True)[1]
    groups = ranks[: len(first)], ranks[len(first) :]
    has_ties = len(set(values)) < len(values)
    if has_ties and min(len(first), len(second)) <= FEW:
        method = PermutationMethod(n_resamples=RESAMPLES, rng=np.random.default_rng(0))
        p = float(mannwhitneyu(*groups, alternative=alternative, method=method).pvalue)
    else:
        p = float(mannwhitneyu(*groups, alternative=alternative).pvalue)
    return max(p, smallest_p(len(first), len(second), alternative))


def _p_of_one(first: Sequence[float], second: Sequence[float], alternative: Alternative) -> float:
    """One value among others: how many of all are at least as extreme."""
    values = [*first, *second]
    one = first[0] if len(first) == 1 else second[0]
    above = sum(value >= one for value in values) / len(values)
    below = sum(value <= one for value in values) / len(values)
    greater, less = (above, below) if len(first) == 1 else (below, above)
    by_side = {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}
    return by_side[alternative]


def smallest_p(first: int, second: int, alternative: Alternative) -> float:
    """The smallest p-value that so many values can have."""
    sides = 2 if alternative == "two-sided" else 1
    return min(1.0, sides / comb(first + second, first))


def superiority(first: Sequence[float], second: Sequence[float]) -> float:
    """The share of pairs in which the value of the first group is larger; ties count half."""
    statistic = float(mannwhitneyu(first, second).statistic)
    return statistic / (len(first) * len(second))
