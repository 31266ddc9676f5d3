"""A budget of time, spent where least is known.

The plan of such a suite has no runs at first. Whenever its runs have ended, one repeat of a group
of rows is added: of those that still fit into the budget, the group with the experiment whose rate
has the widest interval; among equals one on the cluster that is there, then the first of the suite.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from streamquake.harness.campaign.suite.durations import Durations
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

    def _seconds(self, group: RowGroup) -> float:
        return self.durations.total_s(run.experiment for run in self.first[group])

    def _rank(self, group: RowGroup, current: Topology | None) -> tuple[float, bool, RowGroup]:
        runs = self.first[group]
        widest = max(self.knowledge.width(run.experiment.name) for run in runs)
        return -widest, runs[0].experiment.topology != current, group
