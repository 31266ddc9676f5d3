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
from math import inf, isfinite, isinf
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.stats import bootstrap, fisher_exact

from streamquake.harness.campaign.statistics.ranks import p_of_ranks, smallest_p
from streamquake.harness.campaign.statistics.rates import CONFIDENCE, rate_of
from streamquake.harness.campaign.statistics.smallest_change import smallest_slowdown
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
    smallest_p: float = 1.0
    """The smallest p-value that these numbers of runs can have, before the correction."""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    smallest_seen: float | None = None
    """The smallest slowdown, as a share, that would have been found where no change was seen."""

    @property
    def is_longer(self) -> bool:
        """Whether the median rose."""
        return statistics.median(self.now) > statistics.median(self.before)


@dataclass(frozen=True, kw_only=True)
class RateChange:
    """The rate of runs with the expected outcome before and now."""

    before: Rate
    now: Rate
    p: float
    """The corrected p-value of the two-sided test."""
    finding: Finding
    smallest_p: float = 1.0
    """The smallest p-value that these numbers of runs can have, before the correction."""

    @property
    def is_worse(self) -> bool:
        """Whether it certainly fell."""
        if self.finding != "changed":
            return False
        return self.now.count / self.now.n < self.before.count / self.before.n


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Everything that was compared of one experiment."""

    rate: RateChange
    figures: tuple[FigureChange, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """The runs of an experiment in one group: how many were decided, how many of them had the
    expected outcome, and the values of each figure. A value that was never reached is infinite."""

    decided: int
    as_expected: int
    figures: Mapping[str, Sequence[float]]


def compare(experiments: Mapping[str, tuple[Group, Group]]) -> dict[str, Changes]:
    """The changes of each experiment, of its runs before and now; all tests are corrected
    together."""
    found = {name: _compared(before, now) for name, (before, now) in experiments.items()}
    every = [change for changes in found.values() for change in _all_of(changes)]
    tests = _possible([change for change in every if change.finding != "too few runs"])
    corrected = _holm([change.p for change in tests])
    largest = max((change.smallest_p for change in tests), default=0.0)
    return {
        name: Changes(
            rate=_decided(changes.rate, largest, corrected),
            figures=tuple(
                _with_smallest(_decided(figure, largest, corrected), len(tests))
                for figure in changes.figures
            ),
        )
        for name, changes in found.items()
    }


def _with_smallest(change: FigureChange, tests: int) -> FigureChange:
    """With the slowdown that would have been found even if every other test hid it more."""
    if change.finding != "no change seen" or change.ratio is None or isinf(max(change.now)):
        return change
    smallest = smallest_slowdown(change.before, change.now, LEVEL / tests)
    return replace(change, smallest_seen=smallest)


def _possible(
    tests: Sequence[RateChange | FigureChange],
) -> Sequence[RateChange | FigureChange]:
    """The tests whose runs are enough to find a change, though it has to be corrected for the
    number of these tests."""
    enough = [change for change in tests if change.smallest_p * len(tests) <= LEVEL]
    if len(enough) == len(tests):
        return tests
    # Without the test with the fewest runs, the correction for the others is smaller.
    most = max(change.smallest_p for change in tests)
    return _possible([change for change in tests if change.smallest_p < most])


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
    rates = [_rate(group) for group in (before, now)]
    if not (before.decided and now.decided):
        return RateChange(before=rates[0], now=rates[1], p=1.0, finding="too few runs")
    table = [[rate.count, rate.n - rate.count] for rate in rates]
    worst = [[before.decided, 0], [0, now.decided]]
    smallest = float(fisher_exact(worst).pvalue)
    return RateChange(
        before=rates[0],
        now=rates[1],
        p=float(fisher_exact(table).pvalue),
        finding="no change seen" if smallest <= LEVEL else "too few runs",
        smallest_p=smallest,
    )


def _rate(group: Group) -> Rate:
    if not group.decided:
        return Rate(count=0, n=0, low=0.0, high=1.0)
    return rate_of(group.as_expected, group.decided)


def _figure_change(name: str, before: Sequence[float], now: Sequence[float]) -> FigureChange:
    smallest = smallest_p(len(before), len(now), "two-sided")
    change = FigureChange(
        figure=name,
        before=tuple(before),
        now=tuple(now),
        p=1.0,
        finding="too few runs",
        smallest_p=smallest,
    )
    if smallest > LEVEL:
        return change
    p = p_of_ranks(before, now, "two-sided")
    change = replace(change, p=p, finding="no change seen")
    ratio = statistics.median(now) / statistics.median(before) if min(before) > 0 else inf
    if not isfinite(ratio) or min(len(before), len(now)) < 2 or isinf(max(before)):
        return change
    low, high = interval_of_ratio(before, now)
    return replace(change, ratio=ratio, low=low, high=high)


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


def _decided(change: Change, largest: float, corrected: Callable[[float], float]) -> Change:
    """The change with its corrected p-value. `largest` is the largest smallest p-value of all that
    are tested."""
    if change.finding == "too few runs" or change.smallest_p > largest:
        return replace(change, p=1.0, finding="too few runs")
    p = corrected(change.p)
    return replace(change, p=p, finding="changed" if p <= LEVEL else "no change seen")
