"""The results of a self-test: of each cell, and of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamquake.harness.selftest.cells import Cell
from streamquake.reports.record.outcome import Outcome, worst
from streamquake.topologies.errors import common_cause

SCHEMA = 1
Counts = Mapping[str, int | None]


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """The result of one cell: held if exactly the planted anomalies were reported, violated if not,
    undecided if the judge failed (`error`)."""

    cell: Cell
    outcome: Outcome
    places: int
    """How many places were planted."""
    planted: Counts
    reported: Counts = field(default_factory=dict)
    differences: tuple[str, ...] = ()
    error: str = ""
    cause: str = ""
    """The kind of the error; empty without one."""
    seconds: float
    again: str
    """The command that judges this cell alone."""


@dataclass(frozen=True, kw_only=True)
class SelfTest:
    """The results of one self-test. `records` is the requested number for each shape."""

    seed: int
    records: int
    cells: tuple[CellResult, ...]
    seconds: float
    again: str

    @property
    def outcome(self) -> Outcome:
        return worst(cell.outcome for cell in self.cells)

    @property
    def cause(self) -> str:
        """The common kind of the errors because of which cells are undecided."""
        return common_cause(cell.cause for cell in self.cells)

    @property
    def failed(self) -> tuple[CellResult, ...]:
        """The cells that were not held."""
        return tuple(cell for cell in self.cells if cell.outcome is not Outcome.HELD)

    def to_json(self) -> dict[str, Any]:
        document = dataclasses.asdict(self)
        for cell, result in zip(document["cells"], self.cells, strict=True):
            cell |= {
                "spots": cell.pop("places"),
                "class": result.cell.plant,
                "rate": result.cell.rate,
                "shape": result.cell.shape,
                "outcome": str(result.outcome),
            }
            del cell["cell"]
        return {"schema": SCHEMA, "outcome": str(self.outcome), **document}
