"""The page of a suite: one table of its rows, with links to the pages of the runs.

Beside each figure is a small chart of the claim's and the control's runs: a bar up to the median
and a dot for every run. Like the page of a run it works offline and loads nothing from a network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from streamquake.reports.record import atomic_files
from streamquake.reports.render import palette, run_sentences
from streamquake.reports.render.page_links import page_link
from streamquake.reports.run.html import charting_library, page_environment
from streamquake.reports.run.panels.panel_parts import Bar, Panel, bar_row, rows_figure
from streamquake.reports.suite.suite_results import (
    RowResult,
    Spread,
    SuiteFolder,
    SuiteResults,
    SuiteRun,
)

UNKNOWN_FIGURE = "–"
SIDES = {"claim": palette.LINES[0], "control": palette.LINES[1]}


@dataclass(frozen=True, kw_only=True)
class FigureRow:
    """One figure of a row: its name, its values in the claim's and the control's runs, and a
    chart."""

    name: str
    claim: str
    control: str | None
    """None where the row has no control."""
    panel: Panel | None
    """None where nothing was measured."""


@dataclass(frozen=True, kw_only=True)
class OverviewLine:
    """One row of the overview: a claim with what was found, and by how many runs."""

    number: int
    row: RowResult
    effect: str
    runs: str


def overview(results: SuiteResults) -> list[OverviewLine]:
    """Every row on a line."""
    return [
        OverviewLine(number=number, row=row, effect=_effect(row), runs=_runs_text(row))
        for number, row in enumerate(results.rows, start=1)
    ]


def _effect(row: RowResult) -> str:
    """The first relation that is violated or too noisy, else the first one; without relations, the
    first figure that was measured."""
    relations = row.claim.relations if row.claim else ()
    worst = sorted(relations, key=lambda relation: -relation.outcome)
    if worst:
        return worst[0].text
    figures = [figure for figure in figures_of(row) if figure.claim != UNKNOWN_FIGURE]
    if not figures:
        return ""
    control = f"; control {figures[0].control}" if figures[0].control is not None else ""
    return f"{figures[0].name}: {figures[0].claim}{control}"


def _runs_text(row: RowResult) -> str:
    """How many runs each side has, as `5` or `5 + 5`."""
    roles = [run.role for run in row.runs]
    counts = [roles.count("claim"), roles.count("series"), roles.count("control")]
    return " + ".join(str(count) for count in counts if count)


def render_suite(results: SuiteResults, folder: SuiteFolder) -> Path:
    """Write suite.html beside suite.json, and return its path."""
    template = page_environment().get_template("suite.html.j2")
    page = template.render(
        results=results,
        run_link=lambda run: run_link(run, folder),
        headline=headline(results),
        reused_lines=list(reused_lines(results)),
        change_lines=list(change_lines(results)),
        overview=overview(results),
        rows=[(row, list(figures_of(row))) for row in results.rows],
        library=charting_library(),
    )
    atomic_files.write_text(folder.page, page)
    return folder.page


def headline(results: SuiteResults) -> str:
    """The verdict of a suite, in a few words."""
    if results.ended == "interrupted":
        return "interrupted"
    words = ("as expected", "undecided", "not as expected")
    return words[results.verdict]


def reused_lines(results: SuiteResults) -> Iterator[str]:
    """The runs that were taken over, and what that means for the suite."""
    if results.reused:
        yield f"{len(results.reused)} recorded runs taken over: {', '.join(results.reused)}"
    if results.ran_nothing:
        yield "nothing was run, so the suite is undecided; without --resume every run is repeated"


def change_lines(results: SuiteResults) -> Iterator[str]:
    """What is worse than in the baseline; all comparisons are a table of the page."""
    if not results.against:
        return
    worse = [change for change in results.changes if change.is_worse]
    yield f"against {results.against}: {len(results.changes)} comparisons, {len(worse)} worse"
    for change in worse:
        yield f"{change.experiment}, {change.figure}: {change.text}"


def measured(spread: Spread | None, name: str) -> str:
    """A figure over its repeats as text: the median, and for several repeats their number with
    the interval of the median or, of few, their range."""
    if spread is None:
        return UNKNOWN_FIGURE
    _, median = run_sentences.measured(name, spread.median)
    if spread.n == 1:
        return median
    low, high = spread.interval or (spread.low, spread.high)
    span = f"{run_sentences.counted(low)} … {run_sentences.counted(high)}"
    return f"{median} (n {spread.n}, {'95 %: ' if spread.interval else ''}{span})"


def figures_of(row: RowResult) -> Iterator[FigureRow]:
    """The figures of a row with the control's values, as the page shows them."""
    for name, spread in row.figures.items():
        has_control = row.claim is not None and row.claim.control is not None
        control = row.claim.control_figures.get(name) if row.claim else None
        sides = {"claim": spread, "control": control} if has_control else {"claim": spread}
        yield FigureRow(
            name=name,
            claim=measured(spread, name),
            control=measured(control, name) if has_control else None,
            panel=_panel(name, sides),
        )


def run_link(run: SuiteRun, folder: SuiteFolder) -> str:
    """The page of a run, relative to the suite's; empty where there is none."""
    if run.run is None:
        return ""
    return page_link(folder.path.parent / str(run.run) / "report.html", folder.path)


def _panel(name: str, sides: dict[str, Spread | None]) -> Panel | None:
    known = {side: spread for side, spread in sides.items() if spread is not None}
    if not known:
        return None
    traces: list[object] = []
    for row, (side, spread) in enumerate(known.items()):
        _, message = run_sentences.measured(name, spread.median)
        bar = Bar(begin_s=0, end_s=spread.median, colour=SIDES[side], hover=(side, message))
        traces += [bar_row(row, [bar]), _dots(row, spread)]
    figure = rows_figure(traces, list(known))
    figure.update_xaxes(rangemode="tozero", zeroline=False, nticks=5)
    return Panel(name=name, title=name, unit="", figure=figure)


def _dots(row: int, spread: Spread) -> go.Scatter:
    edge = {"width": 1.5, "color": palette.WAITING}
    return go.Scatter(
        x=list(spread.values),
        y=[row] * spread.n,
        mode="markers",
        hoverinfo="x",
        marker={"size": 8, "color": "rgba(255,255,255,0.9)", "line": edge},
    )
