"""The timeline's charts, stacked, with one axis of seconds since the run began.

Each panel is a separate figure. So its heading and legend are text of the page, which wraps in a
narrow window. The page synchronises the x axes. Nothing is judged or derived here (see
`timeline.py`); the panels only draw.
"""

from __future__ import annotations

import pyarrow as pa

from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import by_series
from streamquake.reports.record.record_parts import RecordParts
from streamquake.reports.render import palette
from streamquake.reports.run import timeline
from streamquake.reports.run.panels import metrics
from streamquake.reports.run.panels.checkpoints import checkpoints
from streamquake.reports.run.panels.panel_parts import Panel
from streamquake.reports.run.panels.run_events import run_events
from streamquake.reports.run.panels.tasks import tasks
from streamquake.reports.run.task_lanes import vertex_names


def panels(history: History, table: pa.Table, parts: RecordParts) -> tuple[Panel, ...]:
    """Every panel that has data, in order of importance.

    `parts` records the problems of panels that cannot be drawn.
    """
    series = by_series(table)
    drawn = [
        parts.derive("the events of the run", lambda: run_events(history), otherwise=None),
        metrics.throughput(series),
        metrics.lag(series),
        parts.derive("the checkpoints", lambda: checkpoints(history), otherwise=None),
        *metrics.shades(
            series, parts.derive("the vertices", lambda: _vertices(history), otherwise=list[str]())
        ),
        parts.derive("the task attempts", lambda: tasks(history), otherwise=None),
        *metrics.remaining_series(series),
    ]
    found = tuple(panel for panel in drawn if panel is not None)
    ends_s = [line.at_s[-1] for lines in series.values() for line in lines.values()]
    last_s = max([timeline.end_s(history), *ends_s])
    shapes = parts.derive(
        "the faults and phases",
        lambda: _shapes(history, last_s),
        otherwise=list[dict[str, object]](),
    )
    for panel in found:
        panel.figure.update_xaxes(
            range=[0, max(last_s, 1.0)], zeroline=False, ticks="", ticksuffix=" s"
        )
        panel.figure.update_layout(shapes=shapes)
    return found


def _vertices(history: History) -> list[str]:
    return list(vertex_names(history).values())


def _shapes(history: History, last_s: float) -> list[dict[str, object]]:
    """The fault windows and the lines between phases, the same on every panel."""
    shapes = [_line_at(span.begin_s) for span in timeline.phases(history)[1:]]
    for window in fault_windows(history):
        healed_s = last_s if window.healed_s is None else window.healed_s
        took_effect_s = healed_s if window.in_effect_s is None else window.in_effect_s
        shapes.append(_shade(window.called_s, took_effect_s, palette.FAULT_CALLED))
        if window.in_effect_s is not None:
            shapes.append(_shade(took_effect_s, healed_s, palette.FAULT_IN_EFFECT))
    return shapes


def _line_at(at_s: float) -> dict[str, object]:
    line = {"width": 1, "dash": "dot", "color": palette.PHASE_LINE}
    return {"type": "line", "x0": at_s, "x1": at_s, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _shade(begin_s: float, end_s: float, colour: str) -> dict[str, object]:
    return {
        "type": "rect",
        "x0": begin_s,
        "x1": end_s,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "fillcolor": colour,
        "line": {"width": 0},
        "layer": "below",
    }
