"""The relations of a row: bounds on a figure of the claim's runs, of the control's, or on their
quotient.

A bound on the median of single runs is kept or not. Of several runs it is held or violated only if
that is more than chance, at a level that is corrected for the number of tests of the suite; else it
is too noisy to say, with the number of runs that would probably tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf

from streamquake.harness.campaign.statistics.bounds import BoundTest, quotient_test, value_test
from streamquake.harness.campaign.statistics.changes import interval_of_ratio
from streamquake.harness.campaign.statistics.medians import Median
from streamquake.harness.campaign.suite.model import Relation, RowSource
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.render import run_sentences
from streamquake.reports.suite.suite_results import Figures, RelationResult

Values = tuple[float, ...]
COUNTED = run_sentences.counted


@dataclass(frozen=True, kw_only=True)
class Bound:
    """One bound of a relation: `what` is `claim`, `control` or `A_over_B`."""

    figure: str
    what: str
    is_least: bool
    limit: float

    @classmethod
    def of(cls, relation: Relation) -> Iterator[Bound]:
        for name, limit in relation.bounds.items():
            what, _, sense = name.rpartition("_at_")
            is_least = sense == "least"
            yield cls(figure=relation.figure, what=what, is_least=is_least, limit=limit)

    @property
    def words(self) -> str:
        return f"{self.figure}: {self.what.replace('_', ' ')}"

    @property
    def wanted(self) -> str:
        return f"wanted at {'least' if self.is_least else 'most'} {self.limit:g}"

    def is_kept(self, value: float) -> bool:
        return value >= self.limit if self.is_least else value <= self.limit


@dataclass(frozen=True, kw_only=True)
class Side:
    """The runs of a claim or of its control: how many there are, and their figures."""

    runs: int
    figures: Figures

    def values(self, name: str) -> Values:
        """The values of a figure, of the runs that have it."""
        spread = self.figures.get(name)
        return () if spread is None else spread.values


def relations_of(
    source: RowSource, sides: Mapping[str, Side], level: float
) -> list[RelationResult]:
    """The result of each bound of a row, by its sides `claim` and `control`. A p-value counts up to
    `level`."""
    bounds = [bound for relation in source.relations for bound in Bound.of(relation)]
    return [_result(bound, sides, level) for bound in bounds]


def _result(bound: Bound, sides: Mapping[str, Side], level: float) -> RelationResult:
    names = bound.what.split("_over_")
    groups = [sides[name].values(bound.figure) for name in names]
    for name, group in zip(names, groups, strict=True):
        if not group:
            return _unknown(bound, f"the {name} has no such figure")
        # A figure may be missing because its run never got so far, which would be the worst value.
        if len(group) < (runs := sides[name].runs):
            missing = f"{runs - len(group)} of {runs} runs of the {name}"
            return _unknown(bound, f"{missing} have no such figure")
    value = _value(groups)
    if value is None:
        return _unknown(bound, "neither is above 0")
    if max(map(len, groups)) == 1:
        outcome = Outcome.HELD if bound.is_kept(value) else Outcome.VIOLATED
        text = f"{bound.words} is {_text(value)}, {bound.wanted}"
        return RelationResult(figure=bound.figure, outcome=outcome, text=text)
    return _tested(bound, groups, value, level)


def _tested(bound: Bound, groups: Sequence[Values], value: float, level: float) -> RelationResult:
    """The result for groups of several runs."""
    test = _test(bound, groups)
    text = f"{bound.words} is {_text(value)}{_interval(groups, value)}, {bound.wanted}"
    decided = {Outcome.HELD: test.kept, Outcome.VIOLATED: test.broken}
    outcome = min(decided, key=lambda each: decided[each])
    if decided[outcome] > level or bound.is_kept(value) != (outcome == Outcome.HELD):
        outcome = Outcome.UNDECIDED
        runs = " and ".join(str(len(group)) for group in groups)
        needed = f"about {test.needed} each" if test.needed else "more than 1,000 each"
        text = f"{text}: too noisy to say with {runs} runs, {needed} would probably tell"
    else:
        text = f"{text} (p {test.p:.2g})"
    return RelationResult(figure=bound.figure, outcome=outcome, text=text, p=test.p)


def _test(bound: Bound, groups: Sequence[Values]) -> BoundTest:
    """An upper bound is a lower one of the negative values, or of the quotient turned round."""
    if len(groups) == 1:
        sign = 1 if bound.is_least else -1
        return value_test([sign * value for value in groups[0]], sign * bound.limit)
    first, second = groups
    if bound.is_least:
        return quotient_test(first, second, bound.limit)
    return quotient_test(second, first, 1 / bound.limit)


def _value(groups: Sequence[Values]) -> float | None:
    """The median, or the quotient of two; None where both are 0."""
    first, *others = (Median.of(group).median for group in groups)
    if not others:
        return first
    if others[0] <= 0:  # a cost of 0, for example: any other cost exceeds every multiple of it
        return inf if first > 0 else None
    return first / others[0]


def _interval(groups: Sequence[Values], value: float) -> str:
    if len(groups) == 1:
        median = Median.of(groups[0])
        return f" ({COUNTED(median.low)} to {COUNTED(median.high)})"
    if isinf(value) or min(groups[1]) <= 0 or min(map(len, groups)) == 1:
        return ""
    low, high = interval_of_ratio(groups[1], groups[0])
    return f" ({COUNTED(low)} to {COUNTED(high)})"


def _unknown(bound: Bound, problem: str) -> RelationResult:
    text = f"{bound.words} is unknown: {problem}"
    return RelationResult(figure=bound.figure, outcome=Outcome.UNDECIDED, text=text)


def _text(value: float) -> str:
    return "infinite, since the divisor is 0" if isinf(value) else COUNTED(value)
