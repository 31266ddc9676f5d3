"""The events of the run: phases, faults, probes, and events of the job and the nodes."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from streamquake.reports.record.fault_windows import FaultWindow, fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.render import palette
from streamquake.reports.run import timeline
from streamquake.reports.run.panels.panel_parts import (
    Bar,
    LegendEntry,
    Panel,
    bar_row,
    hover,
    node_of,
    rows_figure,
)


def run_events(history: History) -> Panel | None:
    """A row of phases, a row for each fault and each probe, then the events of the job and of the
    nodes."""
    spans, windows = timeline.phases(history), fault_windows(history)
    moments = timeline.marks(history)
    if not (spans or windows or moments):
        return None
    last_s = timeline.end_s(history)
    traces: list[object] = [
        bar_row(0, [_phase(*numbered) for numbered in enumerate(spans)], "#fff")
    ]
    traces += [bar_row(row, _fault(window, last_s)) for row, window in enumerate(windows, start=1)]
    labels = ["phase", *(_fault_label(window) for window in windows)]
    for check, probed in timeline.probe_spans(history).items():
        traces.append(bar_row(len(labels), [_probe(span) for span in probed]))
        labels.append(check)
    for kind in ("job", "nodes"):
        some = [mark for mark in moments if mark.row == kind]
        if some:
            traces.append(_marks(len(labels), some))
            labels.append(kind)
    return Panel(
        name="happened",
        title="What happened",
        unit="",
        figure=rows_figure(traces, labels),
        keys=_keys({mark.what for mark in moments}),
    )


def _phase(place: int, span: timeline.PhaseSpan) -> Bar:
    return Bar(
        begin_s=span.begin_s,
        end_s=span.end_s,
        colour=palette.PHASES[place % 2],
        text=span.phase,
        hover=(span.phase, f"{span.begin_s:.1f} – {span.end_s:.1f} s"),
    )


def _fault_label(window: FaultWindow) -> str:
    if not window.nodes:
        return f"{window.fault} {window.target}"
    if len(window.nodes) > 1:
        return f"{window.fault} {len(window.nodes)} nodes"
    return f"{window.fault} {node_of(window.nodes[0])}"


def _fault(window: FaultWindow, last_s: float) -> list[Bar]:
    took_effect_s = window.in_effect_s
    healed_s = last_s if window.healed_s is None else window.healed_s
    words = (
        f"{window.fault} on {', '.join(window.nodes) or window.target}",
        window.target if window.nodes else "",
        f"called {window.called_s:.3f} s",
        "effect never verified" if took_effect_s is None else f"in effect {took_effect_s:.3f} s",
        "" if window.ended_early_s is None else f"ended early {window.ended_early_s:.3f} s",
        "not healed" if window.healed_s is None else f"healed {window.healed_s:.3f} s",
        window.reason,
    )
    colour = palette.FAULT_BAR_CALLED
    if took_effect_s is None:
        return [Bar(begin_s=window.called_s, end_s=healed_s, colour=colour, hover=words)]
    ended_s = healed_s if window.ended_early_s is None else window.ended_early_s
    bars = [
        Bar(begin_s=window.called_s, end_s=took_effect_s, colour=colour, hover=words),
        Bar(begin_s=took_effect_s, end_s=ended_s, colour=palette.FAULT_BAR, hover=words),
    ]
    if ended_s < healed_s:
        bars.append(Bar(begin_s=ended_s, end_s=healed_s, colour=colour, hover=words))
    return bars


def _probe(span: timeline.ProbeSpan) -> Bar:
    return Bar(
        begin_s=span.begin_s,
        end_s=span.end_s,
        colour=palette.HELD if span.met else palette.VIOLATED,
        hover=(
            f"{span.check}: {'as expected' if span.met else span.reason}",
            f"{span.begin_s:.2f} – {span.end_s:.2f} s",
        ),
    )


def _marks(row: int, moments: Sequence[timeline.TimelineMark]) -> go.Scatter:
    signs = [palette.MARKS[mark.what] for mark in moments]
    symbols = [palette.SYMBOLS[sign] for _, sign in signs]
    return go.Scatter(
        x=[mark.at_s for mark in moments],
        y=[row] * len(moments),
        mode="markers",
        marker={"color": [colour for colour, _ in signs], "symbol": symbols, "size": 9},
        hovertext=[hover((f"{m.what} at {m.at_s:.2f} s", m.detail)) for m in moments],
        hoverinfo="text",
    )


def _keys(used: set[str]) -> tuple[LegendEntry, ...]:
    return tuple(
        LegendEntry(colour=colour, means=what, sign=sign)
        for what, (colour, sign) in palette.MARKS.items()
        if what in used
    )
