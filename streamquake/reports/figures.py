"""The panels of the timeline: stacked charts that share one axis of seconds since the run began.

Each panel is a figure of its own, so that its heading and legend are text of the page, which wraps
on a narrow window; the page keeps their x axes together. Nothing is judged or computed here beyond
what drawing needs (see `timeline.py`).
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import plotly.graph_objects as go
import pyarrow as pa

from streamquake.reports import palette, timeline
from streamquake.reports.history import History
from streamquake.reports.metrics import Samples, by_series
from streamquake.reports.sampling import on_grid, thinned

ROW_PX = 18
LINES_PX = 150
MAX_LEGEND = 12
MAX_OPEN_LANES = 48
LABEL_LENGTH = 20


@dataclass(frozen=True, kw_only=True)
class Key:
    """One entry of a legend: a colour and what it stands for."""

    colour: str
    means: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One chart of the timeline, with the words around it."""

    name: str
    title: str
    unit: str
    figure: go.Figure
    keys: tuple[Key, ...] = ()
    collapsed: bool = False


THROUGHPUT = {"sent_per_s": "sent by", "output_per_s": "committed to"}
"""Series of the first chart -> how its lines are called before the place."""
HEATS = {
    "backpressure_ratio": ("Back-pressure", "share of time a vertex waited for the one after it"),
    "busy_ratio": ("Busy", "share of time a vertex was working"),
}
CHARTED = {"lag": ("Lag", "records not yet read")}


def panels(history: History, table: pa.Table) -> tuple[Panel, ...]:
    """Every panel there is something to draw for, those of most interest first."""
    series = by_series(table)
    last_s = max(
        [timeline.end_s(history)]
        + [line.at_s[-1] for lines in series.values() for line in lines.values()]
    )
    drawn = [_happened(history), _throughput(series)]
    drawn += [
        _lines(name, *words, series[name]) for name, words in CHARTED.items() if name in series
    ]
    drawn += [_checkpoints(history)]
    drawn += [_heat(name, *words, series[name]) for name, words in HEATS.items() if name in series]
    drawn += [_task_lanes(history)]
    shown = {*THROUGHPUT, *HEATS, *CHARTED}
    drawn += [
        _lines(name, name.replace("_", " "), "", lines, collapsed=True)
        for name, lines in sorted(series.items())
        if name not in shown
    ]
    found = tuple(panel for panel in drawn if panel is not None)
    for panel in found:
        _share_axis(panel.figure, history, last_s)
    return found


def _share_axis(figure: go.Figure, history: History, last_s: float) -> None:
    """The same seconds, fault windows and phase lines on every panel."""
    figure.update_xaxes(range=[0, max(last_s, 1.0)], zeroline=False, ticksuffix=" s")
    for span in timeline.phases(history)[1:]:
        figure.add_vline(
            span.begin_s, line={"width": 1, "dash": "dot", "color": palette.PHASE_LINE}
        )
    for window in timeline.fault_windows(history):
        bites_s = window.in_effect_s if window.in_effect_s is not None else window.healed_s
        _shade(
            figure, window.called_s, last_s if bites_s is None else bites_s, palette.FAULT_CALLED
        )
        if window.in_effect_s is not None:
            healed_s = last_s if window.healed_s is None else window.healed_s
            _shade(figure, window.in_effect_s, healed_s, palette.FAULT_IN_EFFECT)


def _shade(figure: go.Figure, begin_s: float, end_s: float, colour: str) -> None:
    figure.add_vrect(begin_s, end_s, fillcolor=colour, line_width=0, layer="below")


def _figure(height_px: int, traces: Sequence[go.BaseTraceType], **layout: object) -> go.Figure:
    figure = go.Figure(data=list(traces))
    figure.update_layout(
        height=height_px + 30, showlegend=False, barmode="overlay", bargap=0.25,
        hovermode="closest", dragmode="zoom", margin={"l": 150, "r": 14, "t": 6, "b": 24},
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", template="none",
    )  # fmt: skip
    figure.update_yaxes(fixedrange=True, zeroline=False)
    figure.update_layout(**layout)
    return figure


def _rows(labels: Sequence[str]) -> dict[str, object]:
    """A y axis of rows from the top down. Rows are numbers, since two labels may be the same."""
    return {
        "tickvals": list(range(len(labels))),
        "ticktext": [html.escape(label) for label in labels],
        "range": [len(labels) - 0.5, -0.5],
        "showgrid": False,
    }


def _short(name: str, length: int = LABEL_LENGTH) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"


def _bar_row(
    row: int, spans: Sequence[tuple[float, float]], colours: Sequence[str], texts: Sequence[str],
    hovers: Sequence[str],
) -> go.Bar:  # fmt: skip
    """Bars of one row from begin to end; text inside only where it fits."""
    return go.Bar(
        orientation="h", y=[row] * len(spans), base=[begin for begin, _ in spans],
        x=[end - begin for begin, end in spans], width=0.82,
        marker={"color": list(colours), "line": {"width": 0}},
        text=[html.escape(text) for text in texts], textposition="inside",
        insidetextanchor="middle", textangle=0, constraintext="none", cliponaxis=True,
        hovertext=list(hovers), hoverinfo="text",
    )  # fmt: skip


def _happened(history: History) -> Panel | None:
    """Phases, faults, and the moments of the job and the nodes."""
    spans = timeline.phases(history)
    windows = timeline.fault_windows(history)
    moments = timeline.marks(history)
    if not (spans or windows or moments):
        return None
    labels = ["phase", *(_short(f"{w.fault} {' '.join(w.nodes) or w.target}") for w in windows)]
    traces: list[go.BaseTraceType] = [
        _bar_row(
            0,
            [(span.begin_s, span.end_s) for span in spans],
            [palette.PHASES[place % 2] for place in range(len(spans))],
            [span.phase for span in spans],
            [f"{html.escape(s.phase)}: {s.begin_s:.1f} – {s.end_s:.1f} s" for s in spans],
        )
    ]
    last_s = timeline.end_s(history)
    traces += [_fault_row(row, window, last_s) for row, window in enumerate(windows, start=1)]
    for kind in ("job", "nodes"):
        traces += _mark_row(len(labels), [mark for mark in moments if mark.row == kind])
        labels.append(kind)
    used = {mark.what for mark in moments}
    keys = tuple(
        Key(colour=c, means=what) for what, (c, _) in palette.MARKS.items() if what in used
    )
    figure = _figure(ROW_PX * len(labels) + 8, traces, yaxis=_rows(labels))
    return Panel(name="happened", title="What happened", unit="", figure=figure, keys=keys)


def _fault_row(row: int, window: timeline.FaultWindow, last_s: float) -> go.Bar:
    bites_s = window.in_effect_s
    healed_s = last_s if window.healed_s is None else window.healed_s
    words = f"{window.fault} on {', '.join(window.nodes) or window.target}"
    moments = [
        f"called {window.called_s:.3f} s",
        "never seen in effect" if bites_s is None else f"in effect {bites_s:.3f} s",
        "not healed" if window.healed_s is None else f"healed {window.healed_s:.3f} s",
        window.reason,
    ]
    hover = "<br>".join(html.escape(text) for text in (words, window.target, *moments) if text)
    spans = [(window.called_s, healed_s if bites_s is None else bites_s)]
    colours = [palette.FAULT_BAR_CALLED]
    if bites_s is not None:
        spans.append((bites_s, healed_s))
        colours.append(palette.FAULT_BAR)
    return _bar_row(row, spans, colours, [""] * len(spans), [hover] * len(spans))


def _mark_row(row: int, moments: Sequence[timeline.Mark]) -> list[go.Scatter]:
    if not moments:
        return []
    signs = [palette.MARKS[mark.what] for mark in moments]
    return [
        go.Scatter(
            x=[mark.at_s for mark in moments], y=[row] * len(moments), mode="markers",
            marker={"color": [c for c, _ in signs], "symbol": [s for _, s in signs], "size": 9},
            hovertext=[
                html.escape(f"{mark.what} at {mark.at_s:.2f} s") + "<br>" + html.escape(mark.detail)
                for mark in moments
            ],
            hoverinfo="text",
        )
    ]  # fmt: skip


def _throughput(series: Mapping[str, Mapping[str, Samples]]) -> Panel | None:
    lines = {
        f"{words} {where}": samples
        for name, words in THROUGHPUT.items()
        for where, samples in series.get(name, {}).items()
    }
    return _lines("throughput", "Throughput", "records/s", lines) if lines else None


def _lines(
    name: str, title: str, unit: str, lines: Mapping[str, Samples], collapsed: bool = False
) -> Panel:
    colours = cycle(palette.LINES)
    keys: list[Key] = []
    traces = []
    for where, samples in lines.items():
        colour = next(colours)
        at_s, value = thinned(samples)
        keys.append(Key(colour=colour, means=where or title))
        hover = f"{html.escape(where)}: %{{y:,.4~g}} at %{{x:.1f}} s<extra></extra>"
        traces.append(
            go.Scatter(x=at_s, y=value, mode="lines", line={"color": colour, "width": 1.6},
                       hovertemplate=hover)
        )  # fmt: skip
    if len(keys) > MAX_LEGEND:
        keys[MAX_LEGEND:] = [Key(colour="", means=f"and {len(keys) - MAX_LEGEND} more")]
    figure = _figure(LINES_PX, traces, yaxis={"rangemode": "tozero", "nticks": 5})
    return Panel(
        name=name, title=title, unit=unit, figure=figure, keys=tuple(keys), collapsed=collapsed
    )


def _heat(name: str, title: str, unit: str, lines: Mapping[str, Samples]) -> Panel:
    grid_s, rows = on_grid(lines)
    hover = "%{text}: %{z:.0%} at %{x:.1f} s<extra></extra>"
    trace = go.Heatmap(
        x=grid_s, y=list(range(len(lines))), z=rows, zmin=0, zmax=1, showscale=False, ygap=2,
        colorscale=[list(stop) for stop in palette.HEAT], hoverongaps=False, hovertemplate=hover,
        text=[[html.escape(where)] * len(grid_s) for where in lines],
    )  # fmt: skip
    labels = [_short(where) for where in lines]
    figure = _figure(ROW_PX * len(labels) + 8, [trace], yaxis=_rows(labels))
    keys = (
        Key(colour=palette.HEAT[0][1], means="0 %"),
        Key(colour=palette.HEAT[1][1], means="100 %"),
    )
    return Panel(name=name, title=title, unit=unit, figure=figure, keys=keys)


def _checkpoints(history: History) -> Panel | None:
    """Each checkpoint as wide as it took; as high as it took too, so that slow ones stand out."""
    bars = timeline.checkpoint_bars(history)
    if not bars:
        return None
    traces = []
    keys = []
    for state, colour in palette.CHECKPOINTS.items():
        some = [bar for bar in bars if bar.state == state]
        if some:
            keys.append(Key(colour=colour, means=f"{state} ({len(some)})"))
            traces.append(_checkpoint_trace(some, colour))
    figure = _figure(LINES_PX, traces, yaxis={"rangemode": "tozero", "nticks": 5})
    unit = "seconds from trigger to end"
    return Panel(
        name="checkpoints", title="Checkpoints", unit=unit, figure=figure, keys=tuple(keys)
    )


def _checkpoint_trace(bars: Sequence[timeline.CheckpointBar], colour: str) -> go.Bar:
    took = [bar.end_s - bar.begin_s for bar in bars]
    return go.Bar(
        x=[(bar.begin_s + bar.end_s) / 2 for bar in bars], y=took, width=took,
        # The outline keeps a bar visible that is narrower than a pixel.
        marker={"color": colour, "opacity": 0.75, "line": {"width": 2, "color": colour}},
        hovertext=[_checkpoint_hover(bar) for bar in bars], hoverinfo="text",
    )  # fmt: skip


def _checkpoint_hover(bar: timeline.CheckpointBar) -> str:
    lines = [
        f"checkpoint {bar.checkpoint} {bar.state}",
        bar.type,
        f"{bar.begin_s:.2f} – {bar.end_s:.2f} s ({bar.end_s - bar.begin_s:.3f} s)",
        *(f"{key.replace('_', ' ')}: {value}" for key, value in bar.detail.items()),
    ]
    return "<br>".join(html.escape(line) for line in lines if line)


def _task_lanes(history: History) -> Panel | None:
    lanes = timeline.lanes(history)
    if not lanes:
        return None
    traces = [
        _bar_row(
            row,
            [(span.begin_s, span.end_s) for span in lane.spans],
            [_task_colour(span) for span in lane.spans],
            [f"#{s.attempt} {s.node}" if s.state == "RUNNING" else "" for s in lane.spans],
            [_task_hover(lane, span) for span in lane.spans],
        )
        for row, lane in enumerate(lanes)
    ]
    labels = [f"{_short(lane.vertex, LABEL_LENGTH - 4)} ({lane.subtask})" for lane in lanes]
    figure = _figure(ROW_PX * len(labels) + 8, traces, yaxis=_rows(labels))
    return Panel(
        name="tasks", title="Task attempts", unit="one lane a subtask", figure=figure,
        keys=_task_keys(lanes), collapsed=len(lanes) > MAX_OPEN_LANES,
    )  # fmt: skip


def _task_colour(span: timeline.TaskSpan) -> str:
    if span.state == "RUNNING":
        return palette.attempt_colour(span.attempt)
    return palette.TASK_STATES.get(span.state, palette.WAITING)


def _task_hover(lane: timeline.Lane, span: timeline.TaskSpan) -> str:
    lines = [
        f"{lane.vertex} ({lane.subtask})",
        f"attempt {span.attempt} {span.state.lower()}" + (f" on {span.node}" if span.node else ""),
        f"{span.begin_s:.2f} – {span.end_s:.2f} s",
    ]
    return "<br>".join(html.escape(line) for line in lines)


def _task_keys(lanes: Sequence[timeline.Lane]) -> tuple[Key, ...]:
    spans = [span for lane in lanes for span in lane.spans]
    attempts = sorted({span.attempt for span in spans if span.state == "RUNNING"})
    states = dict.fromkeys(span.state for span in spans if span.state != "RUNNING")
    keys = [
        Key(colour=palette.attempt_colour(attempt), means=f"running, attempt {attempt}")
        for attempt in attempts[: len(palette.LINES)]
    ]
    return tuple(
        keys
        + [
            Key(colour=palette.TASK_STATES.get(state, palette.WAITING), means=state.lower())
            for state in states
        ]
    )
