"""The counts of one cell: planted against reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.reconcile.result import ReconciliationResult, violated_classes
from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides
from streamquake.harness.selftest.result import Counts
from streamquake.reports.record.outcome import Finding


def planted_counts(dataset: PlantingDataset, plant: Plant, places: int) -> Counts:
    """The counts that must be reported: those of clean data, and what each place adds."""
    counts = dataset.clean_counts() | dict.fromkeys(plant.also, 0)
    for name, each in plant.effect(dataset.shape.sends).items():
        counts[name] = (counts[name] or 0) + each * places
    return counts


def differences(
    planted: Counts,
    reported: ReconciliationResult,
    dataset: PlantingDataset,
    sides: PlantedSides,
    selected: Column,
) -> tuple[str, ...]:
    """All differences from what was planted: in counts, in classes of examples, in their
    records."""
    return (
        *_of_counts(planted, reported.counts),
        *_of_examples(planted, reported.findings),
        *_of_records(reported.findings, dataset, sides, selected),
    )


def _of_counts(planted: Counts, reported: Counts) -> Iterator[str]:
    for name in dict.fromkeys((*planted, *reported)):
        expected, found = planted.get(name, 0), reported.get(name)
        # A class that no plant has may be left unjudged, but must not be reported.
        if found != expected and not (name not in planted and found is None):
            yield f"{name}: planted {_number(expected)}, reported {_number(found)}"


def _of_examples(planted: Counts, findings: Iterable[Finding]) -> Iterator[str]:
    shown = {_class_of(finding) for finding in findings}
    expected = set(violated_classes(planted))
    if missing := sorted(expected - shown):
        yield f"no example of {', '.join(missing)}"
    if unplanted := sorted(shown - expected):
        yield f"examples of {', '.join(unplanted)}, of which nothing was planted"


def _of_records(
    findings: Sequence[Finding], dataset: PlantingDataset, sides: PlantedSides, selected: Column
) -> Iterator[str]:
    """Examples whose records were not planted, although their number may be right."""
    identity = dataset.shape.identity
    reported = {_identity(finding, identity) for finding in findings}
    if not reported:
        return
    planted_rows = (
        sides.expected.where(selected)
        .select(*identity)
        .unionByName(sides.actual.where(selected).select(*identity))
    )
    is_named = reduce(or_, (_has_identity(dataset, values) for values in reported))
    planted = {tuple(row) for row in planted_rows.where(is_named).collect()}
    for finding in findings:
        if (values := _identity(finding, identity)) not in planted:
            yield f"an example of {_class_of(finding)} names a record not planted: {values}"


def _has_identity(dataset: PlantingDataset, values: Sequence[Any]) -> Column:
    types = (dataset.frame.schema[name].dataType for name in dataset.shape.identity)
    pairs = zip(dataset.shape.identity, values, types, strict=True)
    return reduce(and_, (F.col(n).eqNullSafe(F.lit(v).cast(kind)) for n, v, kind in pairs))


def _identity(finding: Finding, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(finding.detail[name] for name in names)


def _class_of(finding: Finding) -> str:
    """The class without its remark: `phantom, though the send was refused` is a phantom."""
    return finding.what.partition(",")[0]


def _number(count: int | None) -> str:
    return "not judged" if count is None else f"{count:,}"
