"""The request to compare two data sets, and its result."""

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
    """One side as it was requested: its URIs, and the expressions over its columns."""

    name: str
    uris: tuple[str, ...]
    key: str
    sequence: str | None = None
    compare: str | None = None
    format: str | None = None
    schema: Schema | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """How the clients of its source log in."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Expression -> where it was given, such as a line of a mapping file. An expression that is not
    here was given by the option of its name."""

    def place(self, name: str) -> str:
        """Where the expressions of this name were given."""
        return self.places.get(name, f"--{name}")


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """The two sides to compare, and the expressions to compare them by."""

    expected: Side
    actual: Side
    order: str | None = None
    """Over the actual side: the order in which its records arrived."""
    ack: str | None = None
    """Over the expected side: the acknowledgement that the sender received."""
    retracts: str | None = None
    """Over the actual side: a condition that is true for a retraction."""
    upsert: bool = False
    """Whether the actual side is a topic of upserts: the last record of a key counts, and a record
    without a value deletes the key."""
    also: tuple[str, ...] = ()
    """Further classes to judge, of those in `anomalies/`."""

    def __post_init__(self) -> None:
        """Raises BadInput for options that contradict each other."""
        requested = {
            "retracts": self.retracts,
            "order": self.order,
            "sequence": self.actual.sequence,
        }
        extra = next((name for name, text in requested.items() if self.upsert and text), None)
        if extra is not None:
            message = f"it leaves one record of a key, so {self.actual.place(extra)} has no meaning"
            raise bad_input(self.actual.place("upsert"), f"{message}; leave one of the two out")


@dataclass(frozen=True, kw_only=True)
class DataComparison:
    """The result of a comparison. `counts` holds None for a class that was not judged. `reasons`
    explain the outcome; `notes` hold further remarks for the user."""

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
                {"what": finding.what, "where": finding.where, "detail": dict(finding.detail)}
                for finding in self.findings
            ],
            "reasons": list(self.reasons),
            "notes": list(self.notes),
        }
