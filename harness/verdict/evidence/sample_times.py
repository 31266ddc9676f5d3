"""Samples of the metrics that cannot be of the run, by their times."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow.compute as pc

from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import read_metrics

LATER_S = 10.0
"""A sample may be taken while the history ends; in recorded runs at most 1.2 s after it."""


def sampled_after_the_end(metrics: Path, history: History) -> str | None:
    """A message where samples are from long after the last event; None without."""
    with suppress(ValueError):  # the checks that read the metrics say what is wrong
        last_s = pc.max(read_metrics(metrics)["at_s"]).as_py()
        if last_s is not None and last_s > history[-1].at_s + LATER_S:
            return (
                f"the metrics have samples {last_s - history[-1].at_s:.0f} s after the last event"
            )
    return None
