"""Checkpoints: the width and the height of each show its duration, so that slow ones are
visible."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from streamquake.reports.record.history import History
from streamquake.reports.render import palette
from streamquake.reports.render.run_sentences import finding_text, measured
from streamquake.reports.run.checkpoint_bars import CheckpointBar, checkpoint_bars
from streamquake.reports.run.panels.panel_parts import LegendEntry, Panel, hover, lines_figure


def checkpoints(history: History) -> Panel | None:
    """The checkpoints from trigger to end, coloured by their state."""
    bars = checkpoint_bars(history)
    if not bars:
        return None
    by_state = {s: [bar for bar in bars if bar.state == s] for s in palette.CHECKPOINTS}
    used = {state: some for state, some in by_state.items() if some}
    traces = [_trace(some, palette.CHECKPOINTS[state]) for state, some in used.items()]
    keys = tuple(
        LegendEntry(colour=palette.CHECKPOINTS[state], means=f"{state} ({len(some)})")
        for state, some in used.items()
    )
    return Panel(
        name="checkpoints",
        title="Checkpoints",
        unit="seconds from trigger to end",
        figure=lines_figure(traces),
        keys=keys,
    )


def _trace(bars: Sequence[CheckpointBar], colour: str) -> go.Bar:
    took_s = [bar.end_s - bar.begin_s for bar in bars]
    return go.Bar(
        x=[(bar.begin_s + bar.end_s) / 2 for bar in bars],
        y=took_s,
        width=took_s,
        # The outline keeps a bar visible that is narrower than a pixel.
        marker={"color": colour, "opacity": 0.75, "line": {"width": 2, "color": colour}},
        hovertext=[_hover(bar) for bar in bars],
        hoverinfo="text",
    )


def _figure(name: str, value: object) -> str:
    if isinstance(value, int | float):
        return " ".join(measured(name, value))
    return finding_text(value)


def _hover(bar: CheckpointBar) -> str:
    return hover(
        (
            f"checkpoint {bar.checkpoint} {bar.state}",
            bar.type,
            f"{bar.begin_s:.2f} – {bar.end_s:.2f} s ({bar.end_s - bar.begin_s:.3f} s)",
            " · ".join(_figure(name, value) for name, value in bar.detail.items()),
        )
    )
