"""The slopes of a row: how much a figure of its series rises with another figure or a setting.

Every run is a point, repeats too. No point may be missing: a missing point would change the line.
The line is fitted by least squares with a free intercept, so that a time that all runs share (such
as that of a restart) is not part of the slope. With four points or more the slope has an interval;
then it is within or outside of its bounds only if the whole interval is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import StatisticsError, linear_regression

from streamquake.harness.campaign.statistics.bounds import slope_test
from streamquake.harness.campaign.suite.loader import Row
from streamquake.harness.campaign.suite.model import Slope
from streamquake.harness.campaign.suite.suite_run import CompletedRun, figure_of
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.render import run_sentences
from streamquake.reports.suite.suite_results import RelationResult

LEAST_POINTS = 4
"""Fewer points give a line, but hardly an interval of its slope."""


def slopes_of(
    row: Row, completed: Sequence[CompletedRun], level: float
) -> Iterator[RelationResult]:
    """The result of each slope of a row, over its runs without the control's. A p-value counts up
    to `level`."""
    source = row.source
    own = [each for each in completed if each.run.role != "control"]
    # The names of a series follow the row's own, in the order of the file.
    places = dict(zip(row.names, (source.at, *(point.at for point in source.series)), strict=False))
    for slope in source.slopes:
        points = [_point(slope, each, places.get(each.run.experiment)) for each in own]
        yield _result(slope, points, level)


def _point(slope: Slope, completed: CompletedRun, at: float | None) -> tuple[float, float] | None:
    x = at if slope.over is None else figure_of(completed.results, slope.over)
    y = figure_of(completed.results, slope.figure)
    return None if x is None or y is None else (float(x), float(y))


def _result(
    slope: Slope, points: Sequence[tuple[float, float] | None], level: float
) -> RelationResult:
    over = f" over {slope.over}" if slope.over else ""
    words = f"{slope.figure}{over}: slope"
    known = sorted(point for point in points if point is not None)
    if len(known) < len(points):
        missing = len(points) - len(known)
        text = f"{words} is unknown: {missing} of {len(points)} runs have no such figure"
        return RelationResult(figure=slope.figure, outcome=Outcome.UNDECIDED, text=text)
    where = ", ".join(f"{run_sentences.counted(y)} at {run_sentences.counted(x)}" for x, y in known)
    try:
        rise = linear_regression(*zip(*known, strict=True)).slope
    except (StatisticsError, TypeError):
        text = f"{words} is unknown: all points have the same x ({where})"
        return RelationResult(figure=slope.figure, outcome=Outcome.UNDECIDED, text=text)
    low, high = slope.at_least, slope.at_most
    within = (low is None or rise >= low) and (high is None or rise <= high)
    bounds = [f"at least {low:g}"] if low is not None else []
    bounds += [f"at most {high:g}"] if high is not None else []
    text = f"{words} is {run_sentences.counted(rise)} ({where}), wanted {' and '.join(bounds)}"
    outcome = Outcome.HELD if within else Outcome.VIOLATED
    if len(known) < LEAST_POINTS:
        return RelationResult(figure=slope.figure, outcome=outcome, text=text)
    test = slope_test(known, low, high)
    span = f"{run_sentences.counted(test.low)} to {run_sentences.counted(test.high)}"
    text = f"{text}; interval {span}"
    if (test.bound.kept if within else test.bound.broken) > level:
        outcome, text = Outcome.UNDECIDED, f"{text}: too noisy to say with {len(known)} runs"
    return RelationResult(figure=slope.figure, outcome=outcome, text=text, p=test.bound.p)
