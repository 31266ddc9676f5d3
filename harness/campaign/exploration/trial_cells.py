"""The cells of a trial: what it tries, in the parts by which trials are compared."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.target import parse_target, roles_of
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.results import FaultRecord
from streamquake.topologies.model import Topology


@dataclass(frozen=True, kw_only=True)
class Cells:
    """What a trial tries, by kind."""

    moments: frozenset[str] = frozenset()
    """Each fault with its moment."""
    places: frozenset[str] = frozenset()
    """Each fault with its moment and its place."""
    settings: frozenset[str] = frozenset()
    """Each fault with each setting of the job."""
    pairs: frozenset[str] = frozenset()
    """Each two faults of the trial."""

    @property
    def kinds(self) -> tuple[frozenset[str], ...]:
        return self.moments, self.places, self.settings, self.pairs

    @property
    def all(self) -> frozenset[str]:
        return frozenset().union(*self.kinds)


def planned_cells(trial: Experiment) -> Cells:
    """The cells of all steps."""
    return _cells(trial, trial.faults)


def tried_cells(trial: Experiment, records: Sequence[FaultRecord]) -> Cells:
    """The cells of the steps that took effect, and in their window. A step that did not has tried
    nothing."""
    acted = [
        step
        for step, record in zip(trial.faults, records, strict=False)
        if record.in_effect and not record.missed_window
    ]
    return _cells(trial, acted)


def _cells(trial: Experiment, steps: Sequence[Step]) -> Cells:
    return Cells(
        moments=frozenset(f"{step.fault} {_moment(step, steps)}" for step in steps),
        places=frozenset(_at_places(trial.topology, steps)),
        settings=frozenset(_with_settings(trial, steps)),
        pairs=frozenset(_together(steps)),
    )


def _at_places(topology: Topology, steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        yield f"{step.fault} {_moment(step, steps)} on {_place(step.target, topology)}"


def _with_settings(trial: Experiment, steps: Sequence[Step]) -> Iterator[str]:
    if trial.job is not None:
        settings = {**trial.job.config, "parallelism": trial.job.parallelism}
        for step, (name, value) in itertools.product(steps, settings.items()):
            yield f"{step.fault} with {name}={value}"


def _together(steps: Sequence[Step]) -> Iterator[str]:
    for one, other in itertools.combinations(sorted(step.fault for step in steps), 2):
        yield f"{one} and {other}"


def _moment(step: Step, steps: Sequence[Step]) -> str:
    """When, without the numbers: each time after steady state is alike."""
    when = step.when
    if when.between is not None:
        return f"between {when.between[0]} and {when.between[1]}"
    if when.event is not None:
        return f"at {when.event}"
    if isinstance(when.effect_of, int) and when.effect_of <= len(steps):
        return f"in effect of {steps[when.effect_of - 1].fault}"
    return "at a time"


def _place(target: str, topology: Topology) -> str:
    """The link, or the roles of the nodes."""
    choice = parse_target(target)
    if choice.how in ("link", "workload", "job"):
        return target
    return " and ".join(sorted(set(roles_of(choice, topology))))
