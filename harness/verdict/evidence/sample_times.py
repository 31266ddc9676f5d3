"""Samples of the metrics that cannot be of the run, by their times."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow.compute as pc

from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import read_metrics
from streamquake.reports.record.run_events import PhaseBegan

LAST_PHASE = "tear down"
"""The last event of a whole run is of this phase, or follows its begin."""
LATER_S = 10.0
"""A sample may be taken while the history ends; in recorded runs at most 1.2 s after it."""


def sampled_after_the_end(metrics: Path, history: History) -> str | None:
    """A message where samples are from long after the end of a whole run. The history of another
    run may have ended before its samples."""
    if all(event.phase != LAST_PHASE for event in history.of(PhaseBegan)):
        return None
    with suppress(ValueError):  # the checks that read the metrics say what is wrong
        last_s = pc.max(read_metrics(metrics)["at_s"]).as_py()
        if last_s is not None and last_s > history[-1].at_s + LATER_S:
            return (
                f"the metrics have samples {last_s - history[-1].at_s:.0f} s after the last event"
            )
    return None
