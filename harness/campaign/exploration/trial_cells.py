"""The cells of a trial: what it tries, in the parts by which trials are compared."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.target import parse_target
from streamquake.harness.coverage.places import places_of_target
from streamquake.harness.coverage.planned_windows import WINDOWS
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.coverage.hit import Hit
from streamquake.reports.record.event import DISTURBED, PROBE_ALONE
from streamquake.reports.record.results import FaultRecord

NUMBER = re.compile(r"-\d+\b")
"""The number of a node in its name."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """What a trial tries, by kind."""

    moments: frozenset[str] = frozenset()
    """Each fault with its moment."""
    places: frozenset[str] = frozenset()
    """Each fault with its moment and its part of the pipeline."""
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
    return Cells(
        moments=frozenset(f"{step.fault} {_moment(step, trial)}" for step in trial.faults),
        places=frozenset(
            f"{step.fault} {_moment(step, trial)} at {place}"
            for step in trial.faults
            for place in places_of_target(parse_target(step.target), trial.topology)
        ),
        settings=frozenset(_with_settings(trial, trial.faults)),
        pairs=frozenset(_together(trial.faults)),
    )


def tried_cells(trial: Experiment, records: Sequence[FaultRecord], hits: Iterable[Hit]) -> Cells:
    """What a run of the trial tried: the phases and places of which its record proves that a fault
    hit them (`hits`), and the other cells of the steps that took effect, in their window."""
    acted = [step for step, record in zip(trial.faults, records, strict=False) if _acted(record)]
    planned = planned_cells(trial.model_copy(update={"faults": tuple(acted)}))
    timed = planned_cells(
        trial.model_copy(update={"faults": tuple(s for s in acted if s.when.between is None)})
    )
    proven = [hit.cell for hit in hits if hit.verified]
    return Cells(
        moments=timed.moments | {f"{cell.fault} in {cell.phase}" for cell in proven},
        places=timed.places | {f"{c.fault} in {c.phase} at {c.place}" for c in proven},
        settings=planned.settings,
        pairs=planned.pairs,
    )


def injections(trial: Experiment) -> tuple[str, ...]:
    """Each step as its fault and the role or link that it is injected into: what may turn out to
    have no effect, such as a broken link without traffic."""
    return tuple(f"{step.fault} on {NUMBER.sub('', step.target)}" for step in trial.faults)


def effective(trial: Experiment, records: Sequence[FaultRecord]) -> tuple[str, ...]:
    """The injections that took effect, in their window, and disturbed the system."""
    return tuple(
        injection
        for injection, record in zip(injections(trial), records, strict=False)
        if _acted(record) and record.evidence.get(DISTURBED) != PROBE_ALONE
    )


def _acted(record: FaultRecord) -> bool:
    return record.in_effect and not record.missed_window


def _with_settings(trial: Experiment, steps: Sequence[Step]) -> Iterator[str]:
    if trial.job is not None:
        settings = {**trial.job.config, "parallelism": trial.job.parallelism}
        for step, (name, value) in itertools.product(steps, settings.items()):
            yield f"{step.fault} with {name}={value}"


def _together(steps: Sequence[Step]) -> Iterator[str]:
    for one, other in itertools.combinations(sorted(step.fault for step in steps), 2):
        yield f"{one} and {other}"


def _moment(step: Step, trial: Experiment) -> str:
    """When, without the numbers: each time after steady state is alike. A window is the phase of
    the protocol that it is in."""
    when = step.when
    if when.between is not None:
        phase = WINDOWS.get(when.between)
        return f"between {' and '.join(when.between)}" if phase is None else f"in {phase}"
    if when.event is not None:
        return f"at {when.event}"
    if isinstance(when.effect_of, int) and when.effect_of <= len(trial.faults):
        return f"in effect of {trial.faults[when.effect_of - 1].fault}"
    return "at a time"
