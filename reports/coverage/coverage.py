"""Coverage: the strikes of many runs, and the cells that no run struck."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from streamquake.reports.coverage.cell import Cell, CheckpointKind, Phase, Place
from streamquake.reports.coverage.strike import CoveredRun, Strike

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What is known of a cell, or of several: injections with and without proof, the runs of those
    with proof."""

    verified: int = 0
    not_proven: int = 0
    runs: tuple[CoveredRun, ...] = ()

    @property
    def as_expected(self) -> int | None:
        """0 where a run was not as expected, None where that is not known of some run, else 1."""
        results = {run.as_expected for run in self.runs}
        return 0 if 0 in results else None if None in results else 1

    @property
    def results(self) -> Mapping[str, int]:
        """Outcome, as text -> number of runs."""
        found: dict[str, int] = defaultdict(int)
        for run in self.runs:
            found[run.result] += 1
        return dict(sorted(found.items()))


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The strikes of all records, and the cells that the shipped faults could strike."""

    runs: tuple[CoveredRun, ...] = ()
    strikes: tuple[Strike, ...] = ()
    possible: frozenset[Cell] = frozenset()
    problems: Sequence[str] = field(default=())
    """Why records were left out, one line each."""

    def count(self, cell: Cell) -> int:
        """How many injections struck a cell with proof."""
        return self.tally(self._by_cell.get(cell, ())).verified

    def never_struck(self) -> tuple[Cell, ...]:
        """The possible cells that no injection struck with proof, in their order."""
        return tuple(
            cell for cell in self.cells() if cell in self.possible and not self.count(cell)
        )

    def cells(self) -> tuple[Cell, ...]:
        """Every possible cell, and every other one in which something was recorded."""
        return tuple(sorted({*self.possible, *self._by_cell}, key=lambda cell: cell.order))

    def matrix(
        self, place: Place | None = None, kind: CheckpointKind | None = None
    ) -> Mapping[tuple[str, Phase], Tally]:
        """(fault, phase) -> its tally, over all places and kinds or those of one; a pair without a
        possible or recorded cell is missing."""
        found: dict[tuple[str, Phase], list[Strike]] = {}
        for cell in self.cells():
            if place in (None, cell.place) and kind in (None, cell.kind):
                strikes = found.setdefault((cell.fault, cell.phase), [])
                strikes += self._by_cell.get(cell, ())
        return {pair: self.tally(strikes) for pair, strikes in found.items()}

    def strikes_in(self, cell: Cell) -> tuple[Strike, ...]:
        """The strikes in a cell, with and without proof."""
        return tuple(self._by_cell.get(cell, ()))

    @staticmethod
    def tally(strikes: Iterable[Strike]) -> Tally:
        """Counts injections: one that struck several places counts once, with proof where it has
        proof for one of them."""
        known = tuple(strikes)
        proven = {strike.injection: strike.run for strike in known if strike.verified}
        return Tally(
            verified=len(proven),
            not_proven=len({strike.injection for strike in known} - proven.keys()),
            runs=tuple({run.folder: run for run in proven.values()}.values()),
        )

    def to_json(self) -> dict[str, Any]:
        """The matrix as plain data: every possible or recorded cell with its counts and runs."""
        return {
            "schema": SCHEMA,
            "runs": len(self.runs),
            "cells": [self._cell_json(cell) for cell in self.cells()],
            "problems": list(self.problems),
        }

    def _cell_json(self, cell: Cell) -> dict[str, Any]:
        tally = self.tally(self.strikes_in(cell))
        return {
            "fault": cell.fault,
            "phase": str(cell.phase),
            "place": str(cell.place),
            "kind": str(cell.kind),
            "possible": cell in self.possible,
            "verified": tally.verified,
            "not_proven": tally.not_proven,
            "results": dict(tally.results),
            "runs": [str(run.folder) for run in tally.runs],
        }

    @cached_property
    def _by_cell(self) -> Mapping[Cell, list[Strike]]:
        found: dict[Cell, list[Strike]] = defaultdict(list)
        for strike in self.strikes:
            found[strike.cell].append(strike)
        return dict(found)
