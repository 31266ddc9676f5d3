"""Whether a bound on a figure is kept by more than chance, from the runs of one or two groups.

The tests of values and quotients are by ranks, and assume no distribution of the values. The
question is asked in both directions: how probable is it that runs like these keep the bound, or
break it, although the true median is at the bound?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

from scipy.stats import binomtest, false_discovery_control, linregress, norm
from scipy.stats import t as student_t

from streamquake.harness.campaign.statistics.ranks import p_of_ranks, superiority

LEVEL = 0.05
"""The share of false findings among all findings of one suite that is accepted."""
POWER = 0.8
"""The chance that the number of runs which `needed` names shows an effect of the size seen."""
MOST_RUNS = 1000
MIN_POINTS = 3
SMALLEST = 1e-12
"""The error of the slope of points that are exactly on a line."""


@dataclass(frozen=True, kw_only=True)
class BoundTest:
    """The p-values of the two one-sided tests. `needed` is how many runs a group would probably
    need to tell; None where no number up to `MOST_RUNS` would."""

    kept: float
    broken: float
    needed: int | None

    @property
    def p(self) -> float:
        return min(self.kept, self.broken)


def value_test(values: Sequence[float], least: float) -> BoundTest:
    """Whether the median of the values is at least `least`: the sign test (Conover, Practical
    Nonparametric Statistics, 3.4). For an upper bound pass negative values. Raises ValueError
    without values."""
    n, above = len(values), sum(value >= least for value in values)
    return BoundTest(
        kept=float(binomtest(above, n, alternative="greater").pvalue),
        broken=float(binomtest(n - above, n, alternative="greater").pvalue),
        needed=_needed(above / n, factor=4, least=ceil(-log2(LEVEL))),
    )


def quotient_test(
    numerators: Sequence[float], denominators: Sequence[float], least: float
) -> BoundTest:
    """Whether the figure of one group is at least `least` times that of another: Mann-Whitney's
    test of the one against the other times `least`. Raises ValueError without values."""
    scaled = [least * value for value in denominators]
    return BoundTest(
        kept=p_of_ranks(numerators, scaled, "greater"),
        broken=p_of_ranks(numerators, scaled, "less"),
        needed=_needed(superiority(numerators, scaled), factor=6, least=4),
    )


@dataclass(frozen=True, kw_only=True)
class SlopeTest:
    """The slope of a line with its interval of 95 %, and the test of its bounds."""

    slope: float
    low: float
    high: float
    bound: BoundTest


def slope_test(
    points: Sequence[tuple[float, float]], least: float | None, most: float | None
) -> SlopeTest:
    """Whether the slope of the line through points (x, y) is within its bounds, by the t-test of a
    line fitted by least squares. Raises ValueError for fewer than three points, or one x for all.
    """
    xs, ys = zip(*points, strict=True)
    if len(points) < MIN_POINTS or len(set(xs)) == 1:
        raise ValueError(f"a slope with its interval needs {MIN_POINTS} points, and several x")
    line = linregress(xs, ys)
    slope, error = float(line.slope), max(float(line.stderr), SMALLEST)
    line_t = student_t(len(points) - 2)
    above = [float(line_t.sf((slope - least) / error))] if least is not None else []
    below = [float(line_t.sf((most - slope) / error))] if most is not None else []
    half = float(line_t.ppf(1 - LEVEL / 2)) * error
    return SlopeTest(
        slope=slope,
        low=slope - half,
        high=slope + half,
        # Within two bounds it is where it is within each; outside where it is outside of one.
        bound=BoundTest(
            kept=max(above + below), broken=min(1 - p for p in above + below), needed=None
        ),
    )


def threshold(ps: Sequence[float]) -> float:
    """The largest of these p-values that counts as a finding, where all are tests of one suite
    (Benjamini-Hochberg at `LEVEL`); 0 where none does."""
    if not ps:
        return 0.0
    adjusted = false_discovery_control(ps)
    return max((p for p, q in zip(ps, adjusted, strict=True) if q <= LEVEL), default=0.0)


def _needed(share: float, *, factor: int, least: int) -> int | None:
    """How many runs a group needs to tell a share from one half (Noether 1987, Sample size
    determination for some common nonparametric tests)."""
    effect = abs(share - 0.5)
    if effect == 0:
        return None
    quantiles = norm.ppf(1 - LEVEL) + norm.ppf(POWER)
    runs = max(least, ceil(quantiles**2 / (factor * effect**2)))
    return runs if runs <= MOST_RUNS else None
