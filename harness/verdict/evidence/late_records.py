"""Records that the engine's windows left out because they came too late, as the engine counts them.

A job that leaves out what is too late loses nothing: it does what it was made for. So they are
counted beside what is lost, and a window whose value is off can be distinguished from one with late
records.

Flink counts what comes late to the operator of the windows. Where its SQL aggregates in two phases,
as it does by default, several late records of one key and window may come there as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from streamquake.reports.record.metrics import by_series, read_metrics

SERIES = "late_records_dropped"


def late_dropped(metrics: Path) -> int | None:
    """How many were left out, as far as was sampled: what an attempt counted after its last sample
    is not known. None where they were not counted."""
    counted = by_series(read_metrics(metrics)).get(SERIES)
    if counted is None:
        return None
    return sum(_grown(samples.value.tolist()) for samples in counted.values())


def _grown(counter: Iterable[float]) -> int:
    """By how much a counter grew that begins at zero again with each attempt."""
    steps = pairwise((0.0, *counter))
    return int(sum(after - before if after >= before else after for before, after in steps))
