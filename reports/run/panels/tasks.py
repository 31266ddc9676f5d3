"""Task attempts: one lane for each subtask, coloured by attempt while it runs and else by state."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.reports.record.history import History
from streamquake.reports.render import palette
from streamquake.reports.run.panels.panel_parts import (
    LABEL_LENGTH,
    Bar,
    LegendEntry,
    Panel,
    bar_row,
    node_of,
    rows_figure,
    short,
)
from streamquake.reports.run.task_lanes import Lane, TaskSpan, lanes

MAX_OPEN_LANES = 48
"""A chart with more lanes than this is collapsed at first."""


def tasks(history: History) -> Panel | None:
    """The lanes, in the order of the job's vertices."""
    found = lanes(history)
    if not found:
        return None
    traces = [
        bar_row(row, [_bar(lane, span) for span in lane.spans]) for row, lane in enumerate(found)
    ]
    labels = [_label(lane) for lane in found]
    return Panel(
        name="tasks",
        title="Task attempts",
        unit="one lane a subtask",
        figure=rows_figure(traces, labels),
        keys=_keys(found),
        collapsed=len(found) > MAX_OPEN_LANES,
    )


def _label(lane: Lane) -> str:
    number = f" ({lane.subtask})"
    return short(lane.vertex, LABEL_LENGTH - len(number)) + number


def _bar(lane: Lane, span: TaskSpan) -> Bar:
    where = f" on {span.node}" if span.node else ""
    return Bar(
        begin_s=span.begin_s,
        end_s=span.end_s,
        colour=_colour(span),
        text=f"#{span.attempt} {node_of(span.node)}" if span.state == "RUNNING" else "",
        hover=(
            f"{lane.vertex} ({lane.subtask})",
            f"attempt {span.attempt} {span.state.lower()}{where}",
            f"{span.begin_s:.2f} – {span.end_s:.2f} s",
        ),
    )


def _colour(span: TaskSpan) -> str:
    if span.state == "RUNNING":
        return palette.attempt_colour(span.attempt)
    return palette.TASK_STATES.get(span.state, palette.WAITING)


def _keys(found: Sequence[Lane]) -> tuple[LegendEntry, ...]:
    spans = [span for lane in found for span in lane.spans]
    attempts = sorted({span.attempt for span in spans if span.state == "RUNNING"})
    running = tuple(
        LegendEntry(colour=palette.attempt_colour(attempt), means=f"running, attempt {attempt}")
        for attempt in attempts[: len(palette.LINES)]
    )
    others = {span.state: _colour(span) for span in spans if span.state != "RUNNING"}
    return running + tuple(
        LegendEntry(colour=c, means=state.lower()) for state, c in others.items()
    )
