"""Whether a figure, or the rate of expected outcomes, changed between two groups of runs.

Figures are compared by their ranks (Mann-Whitney), rates by Fisher's exact test: neither assumes
how values are distributed. How much a figure changed is the ratio of the medians, with its
bootstrap interval. All tests of one comparison are corrected together for their number (Holm), so
that the chance of any false alarm among them stays below `LEVEL`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.stats import bootstrap, fisher_exact, mannwhitneyu

from streamquake.harness.campaign.statistics.rates import CONFIDENCE, rate_of
from streamquake.reports.suite.rate import Rate

LEVEL = 0.05
"""The chance of a false alarm in one comparison."""
RESAMPLES = 2000
Finding = Literal["changed", "no change seen", "too few runs"]
Values = npt.NDArray[np.float64]
Change = TypeVar("Change", "FigureChange", "RateChange")


@dataclass(frozen=True, kw_only=True)
class FigureChange:
    """A figure before and now. `ratio` is the median now divided by that before, with the interval
    of 95 %; None where the median before is not above 0, or a group has fewer than two values."""

    figure: str
    before: tuple[float, ...]
    now: tuple[float, ...]
    p: float
    """The corrected p-value of the two-sided test."""
    finding: Finding
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def smallest_seen(self) -> float | None:
        """The change, as a share, that would have been outside of the interval."""
        if self.ratio is None or self.low is None or self.high is None:
            return None
        return max(self.high - self.ratio, self.ratio - self.low)


@dataclass(frozen=True, kw_only=True)
class RateChange:
    """The rate of runs with the expected outcome before and now."""

    before: Rate
    now: Rate
    p: float
    """The corrected p-value of the two-sided test."""
    finding: Finding

    @property
    def is_worse(self) -> bool:
        """Whether it certainly fell."""
        fell = self.now.count / self.now.n < self.before.count / self.before.n
        return self.finding == "changed" and fell


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Everything that was compared of one experiment."""

    rate: RateChange
    figures: tuple[FigureChange, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """The runs of an experiment in one group: how many there are, how many had the expected
    outcome, and the values of each figure."""

    runs: int
    as_expected: int
    figures: Mapping[str, Sequence[float]]


def compare(experiments: Mapping[str, tuple[Group, Group]]) -> dict[str, Changes]:
    """The changes of each experiment, of its runs before and now; all tests are corrected
    together."""
    found = {name: _compared(before, now) for name, (before, now) in experiments.items()}
    tests = [
        change.p
        for changes in found.values()
        for change in _all_of(changes)
        if change.finding != "too few runs"
    ]
    corrected = _holm(tests)
    return {
        name: Changes(
            rate=_decided(changes.rate, corrected),
            figures=tuple(_decided(figure, corrected) for figure in changes.figures),
        )
        for name, changes in found.items()
    }


def _all_of(changes: Changes) -> Iterator[RateChange | FigureChange]:
    yield changes.rate
    yield from changes.figures


def _compared(before: Group, now: Group) -> Changes:
    figures = [name for name in before.figures if now.figures.get(name) and before.figures[name]]
    return Changes(
        rate=_rate_change(before, now),
        figures=tuple(
            _figure_change(name, before.figures[name], now.figures[name]) for name in figures
        ),
    )


def _rate_change(before: Group, now: Group) -> RateChange:
    rates = [rate_of(group.as_expected, group.runs) for group in (before, now)]
    table = [[rate.count, rate.n - rate.count] for rate in rates]
    p = float(fisher_exact(table).pvalue)
    worst = [[before.runs, 0], [0, now.runs]]
    possible = float(fisher_exact(worst).pvalue) <= LEVEL
    finding: Finding = "no change seen" if possible else "too few runs"
    return RateChange(before=rates[0], now=rates[1], p=p, finding=finding)


def _figure_change(name: str, before: Sequence[float], now: Sequence[float]) -> FigureChange:
    change = FigureChange(
        figure=name, before=tuple(before), now=tuple(now), p=1.0, finding="too few runs"
    )
    # The smallest p-value that these numbers of runs can have.
    if 2 / comb(len(before) + len(now), len(now)) > LEVEL:
        return change
    change = replace(change, p=_p_of_ranks(before, now), finding="no change seen")
    if statistics.median(before) <= 0:
        return change
    ratio = statistics.median(now) / statistics.median(before)
    low, high = interval_of_ratio(before, now)
    return replace(change, ratio=ratio, low=low, high=high)


def _p_of_ranks(before: Sequence[float], now: Sequence[float]) -> float:
    if len({*before, *now}) == 1:
        return 1.0
    return float(mannwhitneyu(before, now).pvalue)


def interval_of_ratio(before: Sequence[float], now: Sequence[float]) -> tuple[float, float]:
    """The bootstrap interval of 95 % of the median now divided by that before; both need two
    values or more, those before above 0."""

    def ratio(first: Values, second: Values, axis: int = -1) -> Values:
        found: Values = np.median(second, axis=axis) / np.median(first, axis=axis)
        return found

    found = bootstrap(
        (np.array(before, float), np.array(now, float)),
        ratio,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def _holm(tests: Sequence[float]) -> Callable[[float], float]:
    """p-value -> the same after Holm's correction for all tests.

    https://en.wikipedia.org/wiki/Holm%E2%80%93Bonferroni_method
    """
    corrected: dict[float, float] = {}
    highest = 0.0
    for rank, p in enumerate(sorted(tests)):
        highest = max(highest, min(1.0, (len(tests) - rank) * p))
        corrected.setdefault(p, highest)
    return lambda p: corrected[p]


def _decided(change: Change, corrected: Callable[[float], float]) -> Change:
    if change.finding == "too few runs":
        return change
    p = corrected(change.p)
    return replace(change, p=p, finding="changed" if p <= LEVEL else "no change seen")
