"""Coverage: the hits of many runs, and the cells that no run hit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from streamquake.reports.coverage.cell import CheckpointKind, CoverageCell, Phase, Place
from streamquake.reports.coverage.hit import CoveredRun, Hit

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class HitCounts:
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
    """The hits of all records, and the cells that the shipped faults could hit."""

    runs: tuple[CoveredRun, ...] = ()
    hits: tuple[Hit, ...] = ()
    possible: frozenset[CoverageCell] = frozenset()
    problems: Sequence[str] = field(default=())
    """Why records were left out, one line each."""

    def count(self, cell: CoverageCell) -> int:
        """How many injections hit a cell with proof."""
        return self.counts_of(self._by_cell.get(cell, ())).verified

    def never_hit(self) -> tuple[CoverageCell, ...]:
        """The possible cells that no injection hit with proof, in their order."""
        return tuple(
            cell for cell in self.cells() if cell in self.possible and not self.count(cell)
        )

    def cells(self) -> tuple[CoverageCell, ...]:
        """Every possible cell, and every other one in which something was recorded."""
        return tuple(sorted({*self.possible, *self._by_cell}, key=lambda cell: cell.order))

    def matrix(
        self, place: Place | None = None, kind: CheckpointKind | None = None
    ) -> Mapping[tuple[str, Phase], HitCounts]:
        """(fault, phase) -> its counts, over all places and kinds or those of one; a pair without a
        possible or recorded cell is missing."""
        found: dict[tuple[str, Phase], list[Hit]] = {}
        for cell in self.cells():
            if place in (None, cell.place) and kind in (None, cell.kind):
                hits = found.setdefault((cell.fault, cell.phase), [])
                hits += self._by_cell.get(cell, ())
        return {pair: self.counts_of(hits) for pair, hits in found.items()}

    def hits_in(self, cell: CoverageCell) -> tuple[Hit, ...]:
        """The hits in a cell, with and without proof."""
        return tuple(self._by_cell.get(cell, ()))

    @staticmethod
    def counts_of(hits: Iterable[Hit]) -> HitCounts:
        """Counts injections: one that hit several places counts once, with proof where it has
        proof for one of them."""
        known = tuple(hits)
        proven = {hit.injection: hit.run for hit in known if hit.verified}
        return HitCounts(
            verified=len(proven),
            not_proven=len({hit.injection for hit in known} - proven.keys()),
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

    def _cell_json(self, cell: CoverageCell) -> dict[str, Any]:
        counts = self.counts_of(self.hits_in(cell))
        return {
            "fault": cell.fault,
            "phase": str(cell.phase),
            "place": str(cell.place),
            "kind": str(cell.kind),
            "possible": cell in self.possible,
            "verified": counts.verified,
            "not_proven": counts.not_proven,
            "results": dict(counts.results),
            "runs": [str(run.folder) for run in counts.runs],
        }

    @cached_property
    def _by_cell(self) -> Mapping[CoverageCell, list[Hit]]:
        found: dict[CoverageCell, list[Hit]] = defaultdict(list)
        for hit in self.hits:
            found[hit.cell].append(hit)
        return dict(found)
