"""What a reconciliation says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.reports.record.outcome import Finding

VIOLATIONS = ("lost", "duplicated", "phantom", "changed", "reordered")
"""Classes of anomaly that break exactly-once; a record may be in two.

- **lost**: acknowledged and absent
- **duplicated**: copies beyond the first of a sent record, whatever their values
- **phantom**: present but never sent, or sent and certainly refused
- **changed**: sent records with at least one copy that differs in a compared column
- **reordered**: records whose sequence is lower than that of the record just before them in the
  same key and lane, after extra copies and phantoms are taken out
"""


CLOSED_BY_LATER_RECORDS = ("lost", "gap")
"""Classes that what has not come yet can still mend."""
FINAL = ("unmatched_retraction",)
"""Classes that nothing mends, not even where later records replace earlier ones."""


def open_classes(*, replaced: bool) -> tuple[str, ...]:
    """The classes that an output which was not drained may still lose. `replaced`: its records take
    back or replace earlier ones, so that every total which stands may be one on its way."""
    return tuple(
        name
        for name in (*VIOLATIONS, *anomalies)
        if name in CLOSED_BY_LATER_RECORDS or (replaced and name not in FINAL)
    )


def violated_classes(counts: Mapping[str, int | None]) -> tuple[str, ...]:
    """The classes that were found, of those that are violations."""
    return tuple(name for name in (*VIOLATIONS, *anomalies) if counts.get(name))


def unjudged_reasons(counts: Mapping[str, int | None]) -> tuple[str, ...]:
    """Why classes that were asked for have no count, in words."""
    return tuple(
        f"{name} was asked for and could not be judged: it needs {anomalies[name].needs}"
        for name in anomalies
        if name in counts and counts[name] is None
    )


@dataclass(frozen=True, kw_only=True)
class ReconciliationResult:
    """Counts by class, None for a class that was not judged, and a few examples of each.

    The classes of `anomalies/` have a count where they were asked for.

    Beside `VIOLATIONS`, never a violation by themselves: `expected` (acknowledged records),
    `actual` (records present), `unknown_arrived`, `unknown_absent` (sends of unknown result),
    `malformed` (records that could not be read, among the phantoms).
    """

    counts: Mapping[str, int | None]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def violated(self) -> tuple[str, ...]:
        """The classes that were found, in their order."""
        return violated_classes(self.counts)

    @property
    def empty(self) -> bool:
        """Two empty sides, which prove nothing."""
        return not self.counts["expected"] and not self.counts["actual"]
