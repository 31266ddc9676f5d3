"""How often something came out, as a suite shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rate:
    """`count` of `n` runs, and the interval in which the true rate is with 95 % confidence."""

    count: int
    n: int
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.count} of {self.n} ({self.low:.0%} to {self.high:.0%})"
