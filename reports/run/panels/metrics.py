"""Metrics over time: values as lines, shares of time as heat map rows."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import plotly.graph_objects as go

from streamquake.reports.record.metrics import Samples
from streamquake.reports.render import palette
from streamquake.reports.render.downsampling import downsample, resample_to_grid
from streamquake.reports.run.panels.panel_parts import LegendEntry, Panel, lines_figure, rows_figure

MAX_KEYS = 12
"""A legend names at most this many lines; a hover label names each line."""

JsonLines = Mapping[str, Samples]
"""Node, vertex, topic or output -> its samples."""

THROUGHPUT = {"sent_per_s": "sent by", "output_per_s": "committed to"}
"""Series of the first chart -> the prefix of its lines' names."""
LAG = "lag"


@dataclass(frozen=True, kw_only=True)
class Shade:
    """A share of time. `series` maps each series that measures it to the value that means all the
    time."""

    title: str
    unit: str
    series: Mapping[str, float]


SHADES = (
    Shade(
        title="Back-pressure",
        unit="share of time a vertex waited for the one after it",
        series={"backpressure_ratio": 1, "back_pressured_ms_per_s": 1000},
    ),
    Shade(
        title="Busy",
        unit="share of time a vertex was working",
        series={"busy_ratio": 1, "busy_ms_per_s": 1000},
    ),
)


def throughput(series: Mapping[str, JsonLines]) -> Panel | None:
    """Records in and out, in one chart."""
    lines = {
        f"{words} {where}": samples
        for name, words in THROUGHPUT.items()
        for where, samples in series.get(name, {}).items()
    }
    return _lines("throughput", "Throughput", "records/s", lines) if lines else None


def lag(series: Mapping[str, JsonLines]) -> Panel | None:
    lines = series.get(LAG)
    return _lines(LAG, "Lag", "records not yet read", lines) if lines else None


def shades(series: Mapping[str, JsonLines], vertices: Sequence[str]) -> list[Panel]:
    """Back-pressure and busy time of the vertices, in the order of the job."""
    order = {vertex: place for place, vertex in enumerate(vertices)}
    found = []
    for shade in SHADES:
        for name in [name for name in shade.series if name in series]:
            lines = series[name]
            places = sorted(lines, key=lambda where: (order.get(where, len(order)), where))
            found.append(_shades(name, shade, {where: lines[where] for where in places}))
    return found


def remaining_series(series: Mapping[str, JsonLines]) -> list[Panel]:
    """One collapsed chart for each series that no other panel shows."""
    shown = {*THROUGHPUT, LAG, *(name for shade in SHADES for name in shade.series)}
    return [
        _lines(name, name.replace("_", " "), "", lines, collapsed=True)
        for name, lines in series.items()
        if name not in shown
    ]


def _lines(name: str, title: str, unit: str, lines: JsonLines, collapsed: bool = False) -> Panel:
    coloured = list(zip(lines.items(), cycle(palette.LINES), strict=False))
    keys = [LegendEntry(colour=colour, means=where or title) for (where, _), colour in coloured]
    if len(keys) > MAX_KEYS:
        keys[MAX_KEYS:] = [
            LegendEntry(colour="", sign="", means=f"and {len(keys) - MAX_KEYS} more")
        ]
    figure = lines_figure([_line(where, line, colour) for (where, line), colour in coloured])
    return Panel(
        name=name, title=title, unit=unit, figure=figure, keys=tuple(keys), collapsed=collapsed
    )


def _line(where: str, samples: Samples, colour: str) -> go.Scatter:
    at_s, value = downsample(samples)
    return go.Scatter(
        x=at_s,
        y=value,
        mode="lines",
        line={"color": colour, "width": 1.6},
        text=[html.escape(where)] * len(at_s),
        hovertemplate="%{text}: %{y:,.4~g} at %{x:.1f} s<extra></extra>",
    )


def _shades(name: str, shade: Shade, lines: JsonLines) -> Panel:
    grid_s, rows = resample_to_grid(lines)
    shares = [row / shade.series[name] for row in rows]
    trace = go.Heatmap(
        x=grid_s,
        y=list(range(len(lines))),
        z=shares,
        zmin=0,
        zmax=1,
        showscale=False,
        ygap=2,
        colorscale=[list(stop) for stop in palette.SHADES],
        hoverongaps=False,
        text=[[html.escape(where)] * len(grid_s) for where in lines],
        hovertemplate="%{text}: %{z:.0%} at %{x:.1f} s<extra></extra>",
    )
    full = palette.SHADES[-1][1]
    keys = (
        LegendEntry(colour=full, sign="□", means="0 %"),
        LegendEntry(colour=full, means="100 %"),
    )
    figure = rows_figure([trace], list(lines))
    return Panel(name=name, title=shade.title, unit=shade.unit, figure=figure, keys=keys)
