"""How often something came out, with the interval of its rate."""

from __future__ import annotations

from scipy.stats import binomtest

from streamquake.reports.suite.rate import Rate

CONFIDENCE = 0.95


def rate_of(count: int, n: int) -> Rate:
    """The rate of `count` of `n` runs with Wilson's score interval, which is also right for few
    runs and for rates near 0 and 1. Raises ValueError unless 0 <= count <= n and n > 0.

    https://en.wikipedia.org/wiki/Binomial_proportion_confidence_interval#Wilson_score_interval
    """
    if n < 1:
        raise ValueError(f"a rate of {n} runs")
    interval = binomtest(count, n).proportion_ci(CONFIDENCE, method="wilson")
    return Rate(count=count, n=n, low=float(interval.low), high=float(interval.high))
