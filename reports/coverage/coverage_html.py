"""The page of coverage: two heat maps, the injections with links to their runs, and what no run
hit. Like the page of a run it works offline and loads nothing from a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamquake.reports.coverage.cell import CheckpointKind, Phase, Place
from streamquake.reports.coverage.coverage import Coverage, HitCounts
from streamquake.reports.coverage.coverage_text import never_hit_lines, summary_lines
from streamquake.reports.coverage.hit import CoveredRun, Hit
from streamquake.reports.record import atomic_files
from streamquake.reports.render import palette
from streamquake.reports.render.page_links import for_script, page_link
from streamquake.reports.run.html import charting_library, page_environment

ANY = "all"
NEVER, UNPROVEN, EXPECTED, UNKNOWN, UNEXPECTED = range(5)
"""The states of a cell."""
STATES = {1: EXPECTED, 0: UNEXPECTED, None: UNKNOWN}
"""Whether the runs of a hit cell were as expected -> its state."""
COLOURS = (
    palette.NEVER_HIT,
    palette.NOT_PROVEN,
    palette.HELD,
    palette.WAITING,
    palette.VIOLATED,
)
"""State -> its colour."""


def render_coverage(coverage: Coverage, page: Path) -> Path:
    """Write the page, and return its path. Raises OSError where it cannot be written."""
    runs = sorted(coverage.runs, key=lambda run: run.run_id)
    matrix = coverage.matrix()
    pairs = {(cell.fault, cell.phase) for cell in coverage.possible}
    text = (
        page_environment()
        .get_template("coverage.html.j2")
        .render(
            coverage=coverage,
            summary=list(summary_lines(coverage)),
            hit=sum(bool(matrix[pair].verified) for pair in pairs),
            pairs=len(pairs),
            places=[ANY, *_present(coverage, Place)],
            kinds=[ANY, *_present(coverage, CheckpointKind)],
            phases=list(Phase),
            lines=_lines(coverage, page.parent),
            never=list(never_hit_lines(coverage.never_hit())),
            data=for_script(json.dumps(_data(coverage, runs, page.parent))),
            colours=COLOURS,
            library=charting_library(),
        )
    )
    atomic_files.write_text(page, text)
    return page


def _present(coverage: Coverage, kind: type[Place] | type[CheckpointKind]) -> list[str]:
    seen = {value for cell in coverage.cells() for value in (cell.place, cell.kind)}
    return [member for member in kind if member in seen]


@dataclass(frozen=True, kw_only=True)
class InjectionLine:
    """One injection in one phase, with all its places there."""

    hit: Hit
    places: str
    link: str
    """The page of its run; empty where there is none."""


def _lines(coverage: Coverage, folder: Path) -> list[InjectionLine]:
    """The injections by fault and phase; those with proof first."""
    groups: dict[tuple[Any, ...], list[Hit]] = {}
    for each in sorted(coverage.hits, key=_line_order):
        of_line = (each.cell.fault, each.cell.phase, each.cell.kind, each.verified, each.injection)
        groups.setdefault(of_line, []).append(each)
    return [
        InjectionLine(
            hit=group[0],
            places=", ".join(hit.cell.place for hit in group),
            link=_link(group[0].run, folder),
        )
        for group in groups.values()
    ]


def _line_order(hit: Hit) -> tuple[Any, ...]:
    fault, phase, place, kind = hit.cell.order
    return (not hit.verified, fault, phase, kind, hit.run.run_id, hit.step, place)


def _data(coverage: Coverage, runs: list[CoveredRun], folder: Path) -> dict[str, Any]:
    """What the script draws: the rows and columns, the runs, and the cells of each selection."""
    faults = _rows(coverage)
    numbers = {run.folder: number for number, run in enumerate(runs)}
    return {
        "faults": faults,
        "phases": [phase for phase in Phase if _is_shown(coverage, phase)],
        "places": [place for place in Place if any(c.place is place for c in coverage.possible)],
        "runs": [
            [f"{run.experiment} {run.run_id}", run.result, _link(run, folder)] for run in runs
        ],
        "cells": {
            f"{place or ANY}/{kind or ANY}": _cells(coverage.matrix(place, kind), numbers)
            for place in (None, *Place)
            for kind in (None, *CheckpointKind)
        },
    }


def _rows(coverage: Coverage) -> list[str]:
    """The faults: first those with the most injections with proof."""
    counts = dict.fromkeys((cell.fault for cell in coverage.cells()), 0)
    for fault in counts:
        own = [hit for hit in coverage.hits if hit.cell.fault == fault]
        counts[fault] = coverage.counts_of(own).verified
    return sorted(counts, key=lambda fault: (-counts[fault], fault))


def _is_shown(coverage: Coverage, phase: Phase) -> bool:
    return any(cell.phase is phase for cell in coverage.cells())


def _cells(
    matrix: Mapping[tuple[str, Phase], HitCounts], numbers: Mapping[Path, int]
) -> list[list[Any]]:
    """Each cell as [fault, phase, state, verified, not proven, runs]."""
    return [
        [
            fault,
            phase,
            _state(counts),
            counts.verified,
            counts.not_proven,
            [numbers[run.folder] for run in counts.runs],
        ]
        for (fault, phase), counts in matrix.items()
    ]


def _state(counts: HitCounts) -> int:
    if counts.verified:
        return STATES[counts.as_expected]
    return UNPROVEN if counts.not_proven else NEVER


def _link(run: CoveredRun, folder: Path) -> str:
    return page_link(run.folder / "report.html", folder)
