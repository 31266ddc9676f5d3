"""The runs of a suite in their order: runs of one topology are consecutive and share a cluster.

Within a topology the rows keep their order, and a row's experiment and control alternate, so that a
drift of the machine affects both. Each repeat of a row has the next seed, the same for experiment
and control. A run that several rows need (same experiment, same repeat) is run once.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from streamquake.harness.campaign.suite.loader import Row, Suite
from streamquake.harness.campaign.suite.row_groups import RowGroup
from streamquake.harness.experiment.loader import LARGEST_SEED, load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.suite.suite_results import Role
from streamquake.topologies.model import Topology
from streamquake.topologies.problems import BadInput, Problem, did_you_mean


@dataclass(frozen=True, kw_only=True)
class RunPurpose:
    """The purpose of a run: the number of its row, and its role there."""

    row: int
    role: Role


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run: the rows it belongs to, and the number of its repeat."""

    parts: tuple[RunPurpose, ...]
    repeat: int
    experiment: Experiment


@dataclass(frozen=True, kw_only=True)
class SuitePlan:
    """A suite with its seed, and all its runs in their order."""

    suite: Suite
    seed: int
    runs: tuple[PlannedRun, ...]

    def of_row(self, row: int) -> tuple[PlannedRun, ...]:
        """The runs of a row; those of its own experiment are first."""
        found = [(part, run) for run in self.runs for part in run.parts if part.row == row]
        return tuple(run for _, run in sorted(found, key=lambda item: item[0].role != "claim"))

    def experiment_of(self, row: int) -> Experiment:
        """The experiment of a measured row, which may have no run yet. Raises BadInput."""
        if runs := self.of_row(row):
            return runs[0].experiment
        return load_experiment(str(self.suite.rows[row].experiment), seed=self.seed)


def plan_suite(suite: Suite, *, seed: int | None = None, repeats: int | None = None) -> SuitePlan:
    """Plan a suite: every row `repeats` times instead of its own number. The seed is the argument,
    else the suite's, else random. Raises BadInput."""
    if seed is None:
        seed = secrets.randbelow(LARGEST_SEED // 2) if suite.seed is None else suite.seed
    parts = (
        (path, repeat, RunPurpose(row=number, role=role))
        for number, row in enumerate(suite.rows)
        for repeat in range(repeats or row.source.repeats)
        for path, role in _roles(row)
    )
    return SuitePlan(suite=suite, seed=seed, runs=tuple(_grouped(_runs(parts, seed))))


def with_repeat(plan: SuitePlan, group: RowGroup) -> SuitePlan:
    """The plan with one more repeat of a group of rows, after all its runs. Raises BadInput."""
    repeat = 1 + max((run.repeat for number in group for run in plan.of_row(number)), default=-1)
    parts = (
        (path, repeat, RunPurpose(row=number, role=role))
        for number in group
        for path, role in _roles(plan.suite.rows[number])
    )
    return replace(plan, runs=(*plan.runs, *_grouped(_runs(parts, plan.seed))))


def _runs(parts: Iterable[tuple[Path, int, RunPurpose]], seed: int) -> list[PlannedRun]:
    """The runs of parts (experiment, repeat, purpose); equal experiments and repeats are one."""
    purposes: dict[tuple[Path, int], list[RunPurpose]] = defaultdict(list)
    for path, repeat, purpose in parts:
        purposes[path, repeat].append(purpose)
    return [
        PlannedRun(
            parts=tuple(found),
            repeat=repeat,
            experiment=load_experiment(str(path), seed=seed + repeat),
        )
        for (path, repeat), found in purposes.items()
    ]


def chosen_rows(suite: Suite, only: Collection[str]) -> Suite:
    """The rows with an experiment or a control of such a name; without names all. Raises BadInput
    for a name of none."""
    if not only:
        return suite
    known = {name for row in suite.rows for name in row.names}
    problems = [
        Problem(
            file=suite.name,
            message=f'no experiment of this suite is called "{name}"{did_you_mean(name, known)}',
        )
        for name in only
        if name not in known
    ]
    if problems:
        raise BadInput(problems)
    return replace(suite, rows=tuple(row for row in suite.rows if {*row.names} & {*only}))


def _roles(row: Row) -> Iterator[tuple[Path, Role]]:
    """The experiments of one repeat of a row, in their order."""
    if row.experiment is None:
        return
    yield row.experiment, "claim"
    for path in row.series:
        yield path, "series"
    if row.control is not None:
        yield row.control, "control"


def _grouped(runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Runs of equal topologies next to each other, in the order of their first runs."""
    kinds: list[Topology] = []
    for run in runs:
        if run.experiment.topology not in kinds:
            kinds.append(run.experiment.topology)
    return sorted(runs, key=lambda run: kinds.index(run.experiment.topology))
