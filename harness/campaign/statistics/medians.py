"""The median of a figure over the runs, with its interval."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import binom

from streamquake.harness.campaign.statistics.rates import CONFIDENCE


@dataclass(frozen=True, kw_only=True)
class Median:
    """The median of `n` values, and the interval in which the true median is with this confidence.

    The interval is between two of the values, by their ranks, so it needs no assumption on how the
    values are distributed (Conover, Practical Nonparametric Statistics, 3.2). Its confidence is at
    least 95 % from six values on; of fewer values it is their range, with the confidence that this
    has: 94 % of five, 75 % of three.
    """

    n: int
    median: float
    low: float
    high: float
    confidence: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Median:
        """Raises ValueError without values."""
        ranked = sorted(values)
        if not ranked:
            raise ValueError("the median of no values")
        rank = _values_outside(len(ranked))
        return cls(
            n=len(ranked),
            median=statistics.median(ranked),
            low=ranked[rank],
            high=ranked[-1 - rank],
            confidence=1 - 2 * float(binom.cdf(rank, len(ranked), 0.5)) if len(ranked) > 1 else 0.0,
        )


def _values_outside(n: int) -> int:
    """How many values at each end may be outside of the interval."""
    allowed = (1 - CONFIDENCE) / 2
    return max((rank for rank in range(n // 2) if binom.cdf(rank, n, 0.5) <= allowed), default=0)
