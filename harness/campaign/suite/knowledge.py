"""How much is known of each experiment on the software of today, by the recorded runs.

The less is known of the rate of its expected outcome, the wider is the interval of that rate: it is
widest without runs, so that an experiment on a new version comes first, and wider for an experiment
whose outcomes differ than for one whose outcomes are equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from streamquake.cluster.images.store import ImageStore
from streamquake.harness.campaign.statistics.rates import rate_of
from streamquake.harness.campaign.suite.todays_key import todays_key
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.store.stored_run import StoredRun

DAY = len("2026-01-01")


@dataclass
class Knowledge:
    """Experiment -> how many of its runs had the expected outcome, and how many there are; and the
    day of its last run, on any software."""

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    last_days: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, runs: Iterable[StoredRun], experiments: Iterable[Experiment], images: ImageStore
    ) -> Knowledge:
        """What the recorded runs of the experiments show, on the software of today."""
        keys = {todays_key(experiment, images): experiment.name for experiment in experiments}
        knowledge = cls()
        for run in runs:
            day = run.started_at[:DAY]
            if (name := keys.get(run.key)) is not None:
                knowledge.add(name, as_expected=run.as_expected == 1, day=day)
            knowledge._note_day(run.experiment, day)
        return knowledge

    def add(self, experiment: str, *, as_expected: bool, day: str | None = None) -> None:
        """Add a run of today's software; `day` is today unless given."""
        count, n = self.counts.get(experiment, (0, 0))
        self.counts[experiment] = (count + as_expected, n + 1)
        self._note_day(experiment, day or datetime.now(UTC).date().isoformat())

    def last_day(self, experiment: str) -> str:
        """The day of the last run of an experiment, as YYYY-MM-DD in UTC; empty without runs."""
        return self.last_days.get(experiment, "")

    def _note_day(self, experiment: str, day: str) -> None:
        self.last_days[experiment] = max(day, self.last_day(experiment))

    def width(self, experiment: str) -> float:
        """The width of the interval of its rate; 1 without runs."""
        count, n = self.counts.get(experiment, (0, 0))
        if not n:
            return 1.0
        rate = rate_of(count, n)
        return rate.high - rate.low
