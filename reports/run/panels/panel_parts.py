"""The parts of every panel: a chart of lines, rows from the top down, bars in rows."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

ROW_PX = 20
LINES_PX = 150
AXIS_PX = 30
LABEL_LENGTH = 20
HOVER_LENGTH = 64
MIN_TEXT_PX = 9
"""The smallest font of text inside a bar, in pixels. Text that would need a smaller one is hidden
until the reader zooms in."""


@dataclass(frozen=True, kw_only=True)
class LegendEntry:
    """One entry of a legend: a sign in a colour, and its meaning."""

    colour: str
    means: str
    sign: str = "■"


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One chart of the timeline, with its title and legend."""

    name: str
    title: str
    unit: str
    figure: go.Figure
    keys: tuple[LegendEntry, ...] = ()
    collapsed: bool = False


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar in a row, in seconds; `text` is drawn where it fits, `hover` has several lines."""

    begin_s: float
    end_s: float
    colour: str
    text: str = ""
    hover: tuple[str, ...] = ()


def lines_figure(traces: Sequence[go.Scatter | go.Bar]) -> go.Figure:
    """A chart with a y axis of values from zero up."""
    return _figure(LINES_PX, traces, {"rangemode": "tozero", "nticks": 5})


def rows_figure(traces: Sequence[object], labels: Sequence[str]) -> go.Figure:
    """A chart of rows. The rows have numbers, since two labels may be equal after shortening."""
    axis = {
        "tickvals": list(range(len(labels))),
        "ticktext": [html.escape(short(label)) for label in labels],
        "range": [len(labels) - 0.5, -0.5],
        "showgrid": False,
    }
    return _figure(ROW_PX * len(labels) + 8, traces, axis)


def _figure(height_px: int, traces: Sequence[object], yaxis: dict[str, object]) -> go.Figure:
    # Given at once: each later update of a layout takes plotly longer than the whole figure.
    layout = {
        "height": height_px + AXIS_PX,
        "showlegend": False,
        "barmode": "overlay",
        "bargap": 0.25,
        "hovermode": "closest",
        "dragmode": "zoom",
        "margin": {"l": 150, "r": 14, "t": 6, "b": 24},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "template": "none",
        "uniformtext": {"mode": "hide", "minsize": MIN_TEXT_PX},
        "yaxis": {"fixedrange": True, "zeroline": False, "ticks": "", **yaxis},
    }
    return go.Figure(data=list(traces), layout=layout)


def bar_row(row: int, bars: Sequence[Bar], text_colour: str | None = None) -> go.Bar:
    """The bars of one row."""
    return go.Bar(
        orientation="h",
        y=[row] * len(bars),
        base=[bar.begin_s for bar in bars],
        x=[bar.end_s - bar.begin_s for bar in bars],
        width=0.94,
        marker={"color": [bar.colour for bar in bars], "line": {"width": 0}},
        text=[html.escape(bar.text) for bar in bars],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"color": text_colour, "size": 11},
        hovertext=[hover(bar.hover) for bar in bars],
        hoverinfo="text",
    )


def hover(lines: Iterable[str]) -> str:
    """The text of a hover label, with long lines wrapped. It is escaped, since the charts interpret
    markup."""
    broken = (part for line in lines for part in textwrap.wrap(line, HOVER_LENGTH, max_lines=8))
    return "<br>".join(html.escape(part) for part in broken)


def short(name: str, length: int = LABEL_LENGTH) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"


def node_of(name: str) -> str:
    """The name of a node without its service: `taskmanager-2`. Labels have little space."""
    return name.rsplit("/", 1)[-1]
