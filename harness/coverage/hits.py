"""Which cells of the matrix one run hit, from its record alone.

A fault hits the phase in which it took effect. One that lasts and leaves its nodes alive also
hits each phase that begins while it acts. A moment that the record does not prove gives a hit
that is not verified, so that it is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamquake.harness.coverage.affected_places import AffectedPlaces
from streamquake.harness.coverage.batch_windows import batch_windows
from streamquake.harness.coverage.checkpoint_kinds import CheckpointKinds
from streamquake.harness.coverage.checkpoint_windows import checkpoint_windows
from streamquake.harness.coverage.injections import Injection, injections_of
from streamquake.harness.coverage.load_windows import load_windows
from streamquake.harness.coverage.own_steps import own_phase
from streamquake.harness.coverage.phase_window import PhaseWindow, Position, acted_in, position_of
from streamquake.harness.coverage.planned_windows import is_planned
from streamquake.harness.coverage.quiet_times import is_between
from streamquake.harness.coverage.restart_windows import restart_windows
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.evidence.checkpoints import Checkpoint, checkpoints_of
from streamquake.harness.verdict.evidence.engine_clock import clock_moved
from streamquake.reports.coverage.cell import CheckpointKind, CoverageCell, Phase, Place
from streamquake.reports.coverage.hit import CoveredRun, Hit
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import HostClockSet

LOAD = (Phase.LOAD_BEGIN, Phase.LOAD_END)
HOW = {
    Position.PROVEN: "took effect in it, by the engine's stamps",
    Position.POSSIBLE: "may have taken effect in it: the record does not show the exact moments",
}
OWN = "acts at this step itself"
PLANNED = "took effect in the window for which it was planned"
LASTED = "was in effect when it began"
QUIET = "took effect after one checkpoint and before the next"
NOWHERE = "the record proves no phase"


def hits_of(run: CoveredRun, experiment: Experiment, history: History) -> tuple[Hit, ...]:
    """The hits of one run: at most one for each cell and step, verified where one is."""
    places = AffectedPlaces(experiment.topology, history)
    phases = _Phases(history)
    found: dict[tuple[CoverageCell, int], Hit] = {}
    for injection in injections_of(experiment, history):
        for match in _matches(injection, phases, places, history):
            hit = _hit_of(run, injection, match)
            known = found.get((hit.cell, hit.step))
            if known is None or hit.verified > known.verified:
                found[hit.cell, hit.step] = hit
    return tuple(found.values())


@dataclass(frozen=True, kw_only=True)
class _PhaseMatch:
    """A phase and a place that an injection met, or may have met."""

    phase: Phase
    kind: CheckpointKind
    place: Place
    proven: bool
    how: str


class _Phases:
    """The phases of one history. Those of the engine are not known where a clock was set: its
    stamps before and after that do not belong together."""

    def __init__(self, history: History) -> None:
        self.checkpoints: Sequence[Checkpoint] = checkpoints_of(history)
        self.kinds = CheckpointKinds(history, self.checkpoints)
        self.load = tuple(load_windows(history))
        self.clock_set = clock_moved(history) or bool(history.of(HostClockSet))
        self.protocol: tuple[PhaseWindow, ...] = ()
        if not self.clock_set:
            self.protocol = (
                *checkpoint_windows(history, self.checkpoints, self.kinds),
                *batch_windows(history),
                *restart_windows(history, self.checkpoints, self.kinds),
            )


def _matches(
    injection: Injection, phases: _Phases, places: AffectedPlaces, history: History
) -> Iterator[_PhaseMatch]:
    own = own_phase(injection.fault)
    if own is not None:
        yield from _of_own_step(injection, own, phases, places)
        return
    in_protocol = list(_at_onset(injection, phases.protocol, places, history))
    yield from in_protocol or _outside(injection, phases, places)
    yield from _at_onset(injection, phases.load, places, history)
    yield from _while_acting(injection, (*phases.protocol, *phases.load), places)


def _of_own_step(
    injection: Injection, phase: Phase, phases: _Phases, places: AffectedPlaces
) -> Iterator[_PhaseMatch]:
    kind = {
        Phase.SAVEPOINT: CheckpointKind.SAVEPOINT,
        Phase.RESCALE: CheckpointKind.NONE,
    }.get(phase) or phases.kinds.newest_at(injection.onset.seen_ns)
    for place in places.at_onset(injection, None):
        yield _PhaseMatch(phase=phase, kind=kind, place=place, proven=True, how=OWN)


def _at_onset(
    injection: Injection, windows: Sequence[PhaseWindow], places: AffectedPlaces, history: History
) -> Iterator[_PhaseMatch]:
    """The phases in which the fault took effect, or may have."""
    for window in windows:
        position = position_of(injection.onset, window)
        if position is Position.OUTSIDE:
            continue
        planned = position is Position.POSSIBLE and is_planned(injection, window, history)
        in_window = Position.PROVEN if planned else position
        for place, pending in places.at_onset(injection, window).items():
            certain = min(in_window, pending)
            if certain is not Position.OUTSIDE:
                how = PLANNED if planned and certain is Position.PROVEN else HOW[certain]
                yield _match(window, place, proven=certain is Position.PROVEN, how=how)


def _outside(
    injection: Injection, phases: _Phases, places: AffectedPlaces
) -> Iterator[_PhaseMatch]:
    """A fault that met no phase of the protocol."""
    quiet = not phases.clock_set and is_between(injection.onset, phases.checkpoints)
    for place in places.at_onset(injection, None):
        yield _PhaseMatch(
            phase=Phase.BETWEEN if quiet else Phase.UNKNOWN,
            kind=CheckpointKind.NONE,
            place=place,
            proven=quiet,
            how=QUIET if quiet else NOWHERE,
        )


def _while_acting(
    injection: Injection, windows: Sequence[PhaseWindow], places: AffectedPlaces
) -> Iterator[_PhaseMatch]:
    """The phases that began while the fault acted."""
    for window in windows:
        if acted_in(window, injection.onset.seen_ns, injection.acted_until_ns):
            for place in places.at_moment(injection, window.begin.latest_ns):
                yield _match(window, place, proven=True, how=LASTED)


def _match(window: PhaseWindow, place: Place, *, proven: bool, how: str) -> _PhaseMatch:
    return _PhaseMatch(phase=window.phase, kind=window.kind, place=place, proven=proven, how=how)


def _hit_of(run: CoveredRun, injection: Injection, match: _PhaseMatch) -> Hit:
    fault = injection.step.fault
    return Hit(
        cell=CoverageCell(fault=fault, phase=match.phase, place=match.place, kind=match.kind),
        run=run,
        step=injection.number,
        at_s=injection.onset.called_ns / 1e9,
        verified=match.proven and not injection.problem,
        how=injection.problem or match.how,
        together_with=injection.together_with,
    )
