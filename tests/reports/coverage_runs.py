"""Hits by hand, for tests of the matrix and its page."""

from __future__ import annotations

from pathlib import Path

from streamquake.reports.coverage.cell import CheckpointKind, CoverageCell, Phase, Place
from streamquake.reports.coverage.coverage import Coverage
from streamquake.reports.coverage.hit import CoveredRun, Hit


def cell(
    fault: str = "kill",
    phase: Phase = Phase.BARRIER,
    place: Place = Place.SINK,
    kind: CheckpointKind = CheckpointKind.ALIGNED,
) -> CoverageCell:
    return CoverageCell(fault=fault, phase=phase, place=place, kind=kind)


def run_of(
    name: str, out: Path = Path("runs"), *, outcome: str = "held", as_expected: int | None = 1
) -> CoveredRun:
    return CoveredRun(
        run_id=name,
        experiment="by-hand",
        folder=out / name,
        outcome=outcome,
        as_expected=as_expected,
    )


def hit(
    run: CoveredRun, at: CoverageCell, *, step: int = 0, verified: bool = True, how: str = "seen"
) -> Hit:
    return Hit(cell=at, run=run, step=step, at_s=1.0, verified=verified, how=how)


def coverage(*hits: Hit, possible: tuple[CoverageCell, ...] = ()) -> Coverage:
    runs = {each.run.folder: each.run for each in hits}
    return Coverage(runs=tuple(runs.values()), hits=hits, possible=frozenset(possible))
