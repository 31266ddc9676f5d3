"""The result of a reconciliation: counts and examples by class of anomaly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.shape import Shape
from streamquake.reports.record.outcome import Finding

VIOLATIONS = ("lost", "duplicated", "phantom", "changed", "reordered")
"""Classes of anomaly that violate exactly-once; a record may be in two.

- **lost**: acknowledged and absent
- **duplicated**: copies beyond the first of a sent record, whatever their values
- **phantom**: present but never sent, or its send certainly failed
- **changed**: sent records with at least one copy that differs in a compared column
- **reordered**: records whose sequence is lower than that of the record just before them in the
  same key and lane, after extra copies and phantoms are removed
"""


CLOSED_BY_LATER_RECORDS = ("lost", "gap")
"""Classes whose anomalies can disappear when later records arrive."""
FINAL = ("unmatched_retraction",)
"""Classes whose anomalies never disappear, not even where later records replace earlier ones."""


def open_classes(*, replaced: bool) -> tuple[str, ...]:
    """The classes whose anomalies may disappear while an output is not drained. `replaced`: its
    records retract or replace earlier ones, so each total in it may be an intermediate one."""
    return tuple(
        name
        for name in (*VIOLATIONS, *anomalies)
        if name in CLOSED_BY_LATER_RECORDS or (replaced and name not in FINAL)
    )


NOTHING_EXPECTED = "no acknowledged record was expected"


def violated_classes(counts: Mapping[str, int | None]) -> tuple[str, ...]:
    """The violated classes: those with a count above zero."""
    return tuple(name for name in (*VIOLATIONS, *anomalies) if counts.get(name))


def unjudged_reasons(counts: Mapping[str, int | None]) -> tuple[str, ...]:
    """A message for each requested class that could not be judged."""
    return tuple(
        f"{name} was requested and could not be judged: it needs {anomalies[name].requirement}"
        for name in anomalies
        if name in counts and counts[name] is None
    )


@dataclass(frozen=True, kw_only=True)
class Differences:
    """All anomalies of a reconciliation, where its result has counts and examples."""

    found: DataFrame
    """One row per anomalous identity: its count in each class of the row diff."""
    actual: DataFrame
    """All final records of the actual side."""
    suspects: DataFrame
    """Those of them that may be anomalous, except in their order."""
    expected: DataFrame
    """The expected records with which the suspects were compared."""
    shape: Shape
    out_of_order: DataFrame | None = None
    """The reordered records, with their places; None where there are none."""


@dataclass(frozen=True, kw_only=True)
class ReconciliationResult:
    """Counts by class, None for a class that was not judged, and a few examples of each.

    The classes of `anomalies/` have a count where they were requested.

    Beside `VIOLATIONS`, never a violation by themselves: `expected` (acknowledged records),
    `actual` (records present), `unknown_arrived`, `unknown_absent` (sends of unknown result),
    `malformed` (records that could not be read, among the phantoms).
    """

    counts: Mapping[str, int | None]
    findings: tuple[Finding, ...] = field(default=())
    differences: Differences | None = None
    """Within `reconciled`, where there are findings."""

    @property
    def proves_nothing(self) -> bool:
        """Whether no acknowledged record was expected, and nothing wrong was found. Records of
        unknown result may be absent and may be present."""
        return not self.counts["expected"] and not violated_classes(self.counts)
