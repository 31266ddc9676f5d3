"""Records that the engine's windows dropped because they arrived too late, as the engine counts
them.

A job that drops late records loses nothing: windows are specified so. They are counted separately
from lost records, so that a wrong window can be distinguished from one with late records.

Flink counts the records that arrive late at the window operator. Where its SQL aggregates in two
phases, as it does by default, several late records of one key and window may arrive there as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from streamquake.reports.record.metrics import by_series, read_metrics

SERIES = "late_records_dropped"


def late_dropped(metrics: Path) -> int | None:
    """How many were dropped, as far as was sampled: counts of an attempt after its last sample are
    unknown. None where they were not counted."""
    counted = by_series(read_metrics(metrics)).get(SERIES)
    if counted is None:
        return None
    return sum(_counter_growth(samples.value.tolist()) for samples in counted.values())


def _counter_growth(counter: Iterable[float]) -> int:
    """The growth of a counter that each attempt resets to zero."""
    steps = pairwise((0.0, *counter))
    return int(sum(after - before if after >= before else after for before, after in steps))
