"""How often something came out, with the interval of its rate."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import binomtest

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Rate:
    """`count` of `n`, and the interval in which the true rate is with 95 % confidence: Wilson's
    score interval, which is also right for few runs and for rates near 0 and 1.

    https://en.wikipedia.org/wiki/Binomial_proportion_confidence_interval#Wilson_score_interval
    """

    count: int
    n: int
    low: float
    high: float

    @classmethod
    def of(cls, count: int, n: int) -> Rate:
        """Raises ValueError unless 0 <= count <= n and n > 0."""
        if n < 1:
            raise ValueError(f"a rate of {n} runs")
        interval = binomtest(count, n).proportion_ci(CONFIDENCE, method="wilson")
        return cls(count=count, n=n, low=float(interval.low), high=float(interval.high))

    def __str__(self) -> str:
        return f"{self.count} of {self.n} ({self.low:.0%} to {self.high:.0%})"
