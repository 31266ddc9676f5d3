"""How long a run of an experiment takes, from recorded runs."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from streamquake.harness.experiment.model import Experiment
from streamquake.reports.store.stored_run import ELAPSED, StoredRun

OVERHEAD_S = 35.0
"""What a run takes besides its load, where none is recorded: deployment, drain, verdict."""


@dataclass
class Durations:
    """Experiment -> the seconds of its runs."""

    known: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, runs: Iterable[StoredRun]) -> Durations:
        durations = cls()
        for run in runs:
            if (seconds := run.figures.get(ELAPSED)) is not None:
                durations.known[run.experiment].append(seconds)
        return durations

    def expected_s(self, experiment: Experiment) -> float:
        """The median of the recorded runs; without any, the time of the load and `OVERHEAD_S`."""
        if seconds := self.known.get(experiment.name):
            return statistics.median(seconds)
        return experiment.workload.seconds + OVERHEAD_S

    def total_s(self, experiments: Iterable[Experiment]) -> float:
        return sum(map(self.expected_s, experiments))


def duration_text(seconds: float) -> str:
    """A duration for readers, such as `90 s`, `12 min` or `5 h 12 min`; at least 0 s."""
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
