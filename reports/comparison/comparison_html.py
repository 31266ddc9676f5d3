"""The page of a comparison: recovery phases and output of each run, and one table of figures.

Works offline, with links to the pages of the runs.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from pathlib import Path

import plotly.graph_objects as go

from streamquake.reports.comparison.comparison_results import (
    ComparedRun,
    ComparisonFolder,
    TopologyComparison,
)
from streamquake.reports.record import atomic_files
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History, read_history
from streamquake.reports.record.metrics import by_series, read_metrics
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.run_events import RunDrained
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.render import palette, run_sentences
from streamquake.reports.render.page_links import page_link
from streamquake.reports.run.html import charting_library, page_environment
from streamquake.reports.run.panels.panel_parts import (
    Bar,
    LegendEntry,
    Panel,
    bar_row,
    lines_figure,
    rows_figure,
)

HEADLINES = {
    Outcome.HELD: "as expected",
    Outcome.UNDECIDED: "undecided",
    Outcome.VIOLATED: "not as expected",
}
OUTPUT = "output_per_s"
SHOWN = {
    Outcome.HELD: "the same",
    Outcome.VIOLATED: "not the same",
    Outcome.UNDECIDED: "unknown",
    None: "for information",
}
"""The text of an outcome of a difference."""


def render_comparison(comparison: TopologyComparison, folder: ComparisonFolder) -> Path:
    """Write compare.html beside compare.json, and return its path."""
    drawn = [recovery_panel(comparison), output_panel(comparison, folder.path.parent)]
    page = (
        page_environment()
        .get_template("compare.html.j2")
        .render(
            comparison=comparison,
            headline=headline(comparison),
            panels=[panel for panel in drawn if panel is not None],
            rows=list(rows(comparison)),
            links=[_link(run, folder) for run in comparison.runs],
            differences=[(each, SHOWN[each.outcome]) for each in comparison.differences],
            library=charting_library(),
        )
    )
    atomic_files.write_text(folder.page, page)
    return folder.page


def headline(comparison: TopologyComparison) -> str:
    """The verdict of a comparison, in a few words."""
    return "interrupted" if comparison.ended == "interrupted" else HEADLINES[comparison.verdict]


def rows(comparison: TopologyComparison) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The table: outcomes by check, then every figure, as texts."""
    for name in comparison.checks():
        found = [run.check(name) for run in comparison.runs]
        yield name, tuple("–" if check is None else str(check.outcome) for check in found)
    for name, values in comparison.figures():
        group, _, figure = name.partition(".")
        words, _ = run_sentences.measured(figure, None)
        yield (
            f"{group}: {words}",
            tuple(run_sentences.measured(figure, value)[1] for value in values),
        )


def recovery_panel(comparison: TopologyComparison) -> Panel | None:
    """For each run its recovery, from phase to phase, in seconds since the fault."""
    recoveries = [
        run_sentences.milestones(run.results.recovery) if run.results else ()
        for run in comparison.runs
    ]
    names = dict.fromkeys(name for each in recoveries for name, at_s in each if at_s is not None)
    if not names:
        return None
    colours = {name: palette.LINES[n % len(palette.LINES)] for n, name in enumerate(names)}
    traces = [bar_row(row, _bars(each, colours)) for row, each in enumerate(recoveries)]
    figure = rows_figure(traces, [run.topology for run in comparison.runs])
    figure.update_xaxes(rangemode="tozero", zeroline=False, ticksuffix=" s")
    figure.update_yaxes(automargin=True)
    keys = tuple(LegendEntry(colour=colour, means=name) for name, colour in colours.items())
    return Panel(
        name="recovery",
        title="Recovery",
        unit="seconds since the first fault took effect",
        figure=figure,
        keys=keys,
    )


def _bars(milestones: tuple[tuple[str, float | None], ...], colours: dict[str, str]) -> list[Bar]:
    bars, before_s = [], 0.0
    for name, at_s in milestones:
        if at_s is None:
            continue
        message = (name, f"{at_s:.2f} s")
        bars.append(Bar(begin_s=before_s, end_s=at_s, colour=colours[name], hover=message))
        before_s = at_s
    return bars


def output_panel(comparison: TopologyComparison, out: Path) -> Panel | None:
    """The committed output of each run, by time since its first fault."""
    traces, keys = [], []
    for number, run in enumerate(comparison.runs):
        if run.results is None:
            continue
        folder = RunFolder(out / run.results.run_id)
        colour = palette.LINES[number % len(palette.LINES)]
        injected_at_s, drained_s = _moments(folder)
        for name, samples in by_series(read_metrics(folder.metrics)).get(OUTPUT, {}).items():
            message = html.escape(f"{run.topology}: {name}")
            shown = samples.at_s <= drained_s
            traces.append(
                go.Scatter(
                    x=samples.at_s[shown] - injected_at_s,
                    y=samples.value[shown],
                    mode="lines",
                    line={"color": colour, "width": 1.6},
                    hovertemplate=f"{message}: %{{y:,.4~g}} at %{{x:.1f}} s<extra></extra>",
                )
            )
        keys.append(LegendEntry(colour=colour, means=run.topology))
    if not traces:
        return None
    figure = lines_figure(traces)
    figure.update_xaxes(zeroline=True, ticksuffix=" s")
    return Panel(
        name="output",
        title="Committed output",
        unit="records/s, by seconds since the first fault took effect",
        figure=figure,
        keys=tuple(keys),
    )


def _moments(folder: RunFolder) -> tuple[float, float]:
    """When the first fault took effect and when all output was committed, in seconds since the run
    began; 0 and infinity where that was not observed."""
    history = read_history(folder.history) if folder.history.exists() else History()
    injected, drained = history.first(FaultInEffect), history.first(RunDrained)
    return (
        0.0 if injected is None else injected.seen_ns / 1e9,
        math.inf if drained is None else drained.at_s,
    )


def _link(run: ComparedRun, folder: ComparisonFolder) -> str:
    """The page of a run, relative to the comparison's; empty where there is none."""
    if run.results is None:
        return ""
    page = folder.path.parent / run.results.run_id / "report.html"
    return page_link(page, folder.path)
