"""Any two data sets, compared: what is asked, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.reading.format import Schema
from streamquake.reports.record.outcome import Finding, Outcome
from streamquake.topologies.problems import bad_input

SCHEMA = 1
COUNTS = (
    "expected",
    "actual",
    "lost",
    "duplicated",
    "phantom",
    "changed",
    "reordered",
    "unknown_arrived",
    "unknown_absent",
    "malformed",
)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side as it was asked for: where it is, and the expressions over its columns."""

    name: str
    uris: tuple[str, ...]
    key: str
    sequence: str | None = None
    compare: str | None = None
    format: str | None = None
    schema: Schema | None = None
    places: Mapping[str, str] = field(default_factory=dict)
    """Of what was asked where it was given, where that is not the option of its name."""

    def place(self, name: str) -> str:
        """Where the expressions of this name were given."""
        return self.places.get(name, f"--{name}")


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """What is to be compared with what, and by what."""

    expected: Side
    actual: Side
    order: str | None = None
    """Over the actual side: in which order its records came."""
    ack: str | None = None
    """Over the expected side: what its sender was told."""
    retracts: str | None = None
    """Over the actual side: which of its records take others back."""
    upsert: bool = False
    """Whether of the actual side's records with one key the last counts, and one without a value
    deletes the others."""
    also: tuple[str, ...] = ()
    """Classes of `anomalies/` to be judged too."""

    def __post_init__(self) -> None:
        """Raises BadInput for what contradicts itself."""
        requested = {
            "retracts": self.retracts,
            "order": self.order,
            "sequence": self.actual.sequence,
        }
        also = next((name for name, text in requested.items() if self.upsert and text), None)
        if also is not None:
            message = f"it leaves one record of a key, so {self.actual.place(also)} says nothing"
            raise bad_input(self.actual.place("upsert"), f"{message}; leave one of the two out")


@dataclass(frozen=True, kw_only=True)
class DataComparison:
    """What came of it. `counts` holds None for a class that was not judged; `reasons` say why the
    outcome is what it is, `notes` what else should be known."""

    outcome: Outcome
    counts: Mapping[str, int | None]
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The document of `--json`."""
        return {
            "schema": SCHEMA,
            "outcome": str(self.outcome),
            "counts": {name: self.counts.get(name) for name in (*COUNTS, *anomalies)},
            "findings": [
                {"what": each.what, "where": each.where, "detail": dict(each.detail)}
                for each in self.findings
            ],
            "reasons": list(self.reasons),
            "notes": list(self.notes),
        }
