"""One injection of a fault in one cell of the matrix, and the run to which it belongs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from streamquake.reports.coverage.cell import CoverageCell


@dataclass(frozen=True, kw_only=True)
class CoveredRun:
    """A run whose record was read; `as_expected` is 1 (yes), 0 (no) or None (not known)."""

    run_id: str
    experiment: str
    folder: Path
    outcome: str
    as_expected: int | None

    @property
    def result(self) -> str:
        """The outcome, and whether it is the expected one where it is not held."""
        if (self.outcome, self.as_expected) == ("held", 1):
            return self.outcome
        expected = {1: ", as expected", 0: ", not as expected", None: ""}
        return self.outcome + expected[self.as_expected]


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A fault in a cell. Only a verified one counts; any other may have happened in the cell."""

    cell: CoverageCell
    run: CoveredRun
    step: int
    """The fault's place in the schedule of its run, from zero."""
    at_s: float
    """When the injection was called, in seconds of the run's clock."""
    verified: bool
    how: str
    """Which evidence places it there; of one that is not verified, why not."""
    together_with: tuple[str, ...] = ()
    """The other faults that acted at the same time: the outcome is that of all of them."""

    @property
    def injection(self) -> tuple[Path, int]:
        """The run and the step: a fault on several places is one injection."""
        return self.run.folder, self.step
