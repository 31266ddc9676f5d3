"""A budget of time, spent where least is known.

The plan of such a suite has no runs at first. Whenever its runs have ended, one repeat of a group
of rows is added: of those that still fit into the budget, the group with the experiment whose rate
has the widest interval; among equals the one whose last run, on any software, is of the earliest
day, so that no row is left out night after night; then one on the cluster that is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from streamquake.harness.campaign.suite.durations import Durations, duration_text
from streamquake.harness.campaign.suite.knowledge import Knowledge
from streamquake.harness.campaign.suite.plan import PlannedRun, SuitePlan, with_repeat
from streamquake.harness.campaign.suite.row_groups import RowGroup, row_groups
from streamquake.topologies.model import Topology


@dataclass
class Budget:
    """A budget of `seconds`, for the groups of a suite."""

    seconds: float
    knowledge: Knowledge
    durations: Durations
    first: dict[RowGroup, tuple[PlannedRun, ...]] = field(default_factory=dict)
    """Group -> the runs of its first repeat, to compare the groups by."""

    def of_suite(self, plan: SuitePlan) -> SuitePlan:
        """The plan without runs, whose runs this budget adds."""
        empty = SuitePlan(suite=plan.suite, seed=plan.seed, runs=())
        for group in row_groups(plan.suite.rows):
            if runs := with_repeat(empty, group).runs:
                self.first[group] = runs
        return empty

    def extended(self, plan: SuitePlan, elapsed_s: float) -> SuitePlan | None:
        """The plan with the next repeat; None where none fits into the rest of the budget."""
        left_s = self.seconds - elapsed_s
        current = plan.runs[-1].experiment.topology if plan.runs else None
        fitting = [group for group in self.first if self._seconds(group) <= left_s]
        if not fitting:
            return None
        return with_repeat(plan, min(fitting, key=lambda group: self._rank(group, current)))

    def has_time_for(self, planned: PlannedRun, elapsed_s: float) -> bool:
        """Whether another run would probably end within the budget."""
        return elapsed_s + self.durations.expected_s(planned.experiment) <= self.seconds

    def too_long(self) -> list[str]:
        """A warning for each group of rows that does not fit even into the whole budget."""
        return [
            f"the budget of {duration_text(self.seconds)} is too short for "
            f"{', '.join(run.experiment.name for run in runs)}: about "
            f"{duration_text(self._seconds(group))}"
            for group, runs in self.first.items()
            if self._seconds(group) > self.seconds
        ]

    def is_too_short_for(self, row: int) -> bool:
        """Whether a row does not fit even into the whole budget."""
        return any(row in group and self._seconds(group) > self.seconds for group in self.first)

    def _seconds(self, group: RowGroup) -> float:
        return self.durations.total_s(run.experiment for run in self.first[group])

    def _rank(self, group: RowGroup, current: Topology | None) -> tuple[float, str, bool, RowGroup]:
        runs = self.first[group]
        names = [run.experiment.name for run in runs]
        widest = max(map(self.knowledge.width, names))
        last = min(map(self.knowledge.last_day, names))
        return -widest, last, runs[0].experiment.topology != current, group
