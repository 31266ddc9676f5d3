"""The trend page: a line for each experiment, the newest regressions first.

A line has a strip of outcomes, and small charts of its figures; each mark is a run. Like the page
of a run it works offline and loads nothing from a network.
"""

from __future__ import annotations

import html
import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from streamquake.reports.record import atomic_files
from streamquake.reports.render import palette, run_sentences
from streamquake.reports.render.page_links import page_link
from streamquake.reports.run.html import charting_library, page_environment
from streamquake.reports.run.panels.panel_parts import Panel, hover
from streamquake.reports.store.stored_run import StoredRun
from streamquake.reports.trend.trend_row import TrendRow

OUTCOMES = {1: palette.HELD, 0: palette.VIOLATED, None: palette.WAITING}
WORDS = {1: "as expected", 0: "not as expected", None: "not known"}
CHARTS = 4
"""The charts of a line, the strip of outcomes included."""
HEIGHT_PX = 132
Links = Mapping[str, str]
"""Run -> its page; empty where there is none."""


def render_trend(rows: Sequence[TrendRow], page: Path, out: Path) -> Path:
    """Write the page. The runs that still have a folder in `out` are linked."""
    links = {run.run_id: _link(run, out, page.parent) for row in rows for run in row.runs}
    ordered = sorted(rows, key=_newest_regression_first)
    template = page_environment().get_template("trend.html.j2")
    runs = [run for row in rows for run in row.runs]
    text = template.render(
        rows=[(row, _panel(row, links)) for row in ordered],
        runs=len(runs),
        first=min((run.started_at for run in runs), default="")[:10],
        last=max((run.started_at for run in runs), default="")[:10],
        regressions=sum(bool(row.regressions) for row in rows),
        library=charting_library(),
    )
    page.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.write_text(page, text)
    return page


def _newest_regression_first(row: TrendRow) -> tuple[bool, list[int], str]:
    changed = [change.started_at for change in row.changes]
    newest = [-ord(sign) for sign in (changed[-1] if changed and row.regressions else "")]
    return not row.regressions, newest, row.experiment


def _panel(row: TrendRow, links: Links) -> Panel:
    titles = ["outcomes", *map(html.escape, row.figures[: CHARTS - 1])]
    figure = make_subplots(
        rows=1, cols=CHARTS, subplot_titles=titles, horizontal_spacing=0.05, column_widths=None
    )
    figure.add_trace(_strip(row, links), row=1, col=1)
    for column, name in enumerate(row.figures[: CHARTS - 1], 2):
        for trace in _figure_traces(row, name, links):
            figure.add_trace(trace, row=1, col=column)
    for change in row.changes:
        figure.add_vline(
            x=change.started_at, line={"width": 1, "dash": "dot", "color": palette.PHASE_LINE}
        )
    figure.update_layout(
        height=HEIGHT_PX,
        showlegend=False,
        hovermode="closest",
        margin={"l": 40, "r": 8, "t": 22, "b": 22},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        template="none",
    )
    figure.update_annotations(font={"size": 11})
    span = [row.runs[0].started_at, row.runs[-1].started_at]
    figure.update_xaxes(showgrid=False, nticks=4, zeroline=False)
    if span[0] != span[1]:
        figure.update_xaxes(autorangeoptions={"include": span})
    figure.update_yaxes(rangemode="tozero", nticks=3, zeroline=False)
    figure.update_yaxes(visible=False, range=[-1, 1], row=1, col=1)
    return Panel(name=row.experiment, title=row.experiment, unit="", figure=figure)


def _strip(row: TrendRow, links: Links) -> go.Scatter:
    """A mark for each run: in the middle as expected, below not, above not known."""
    heights = {1: 0.0, 0: -0.6, None: 0.6}
    return go.Scatter(
        x=[run.started_at for run in row.runs],
        y=[heights[run.as_expected] for run in row.runs],
        mode="markers",
        marker={
            "symbol": "line-ns",
            "size": 13,
            "line": {"width": 3, "color": [OUTCOMES[run.as_expected] for run in row.runs]},
        },
        hovertext=[_hover(run) for run in row.runs],
        hoverinfo="text",
        customdata=[links[run.run_id] for run in row.runs],
    )


def _figure_traces(row: TrendRow, name: str, links: Links) -> list[go.Scatter]:
    """A dot for each run, and the median of all runs on the same software."""
    known = [run for run in row.runs if name in run.figures]
    dots = go.Scatter(
        x=[run.started_at for run in known],
        y=[run.figures[name] for run in known],
        mode="markers",
        marker={"size": 5, "color": [OUTCOMES[run.as_expected] for run in known]},
        hovertext=[_hover(run, name) for run in known],
        hoverinfo="text",
        customdata=[links[run.run_id] for run in known],
    )
    medians: tuple[list[str | None], list[float | None]] = ([], [])
    for _, same in groupby(known, key=lambda run: run.key):
        runs = list(same)
        median = statistics.median(run.figures[name] for run in runs)
        medians[0].extend([runs[0].started_at, runs[-1].started_at, None])
        medians[1].extend([median, median, None])
    line = go.Scatter(
        x=medians[0],
        y=medians[1],
        mode="lines",
        line={"width": 2, "color": palette.LINES[0]},
        hoverinfo="skip",
    )
    return [line, dots]


def _hover(run: StoredRun, figure: str | None = None) -> str:
    lines = [run.run_id, f"{run.outcome}, {WORDS[run.as_expected]}"]
    if figure is not None:
        lines.append(
            " ".join(run_sentences.measured(figure.partition(".")[2], run.figures[figure]))
        )
    if run.as_expected != 1:
        lines.append(run.why)
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return hover([*lines, versions, "" if run.load_1m is None else f"load {run.load_1m:g}"])


def _link(run: StoredRun, out: Path, folder: Path) -> str:
    """The page of a run, relative to the folder of this page; empty where there is none."""
    return page_link(out / run.run_id / "report.html", folder)
