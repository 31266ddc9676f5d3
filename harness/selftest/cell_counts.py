"""The account of one cell: what was planted against what was reported."""

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


def planted_counts(planting: PlantingDataset, plant: Plant, places: int) -> Counts:
    """What must be reported: clean data's counts, and what each place adds to them."""
    counts = planting.clean_counts() | dict.fromkeys(plant.also, 0)
    for name, each in plant.effect(planting.shape.sends).items():
        counts[name] = (counts[name] or 0) + each * places
    return counts


def differences(
    planted: Counts,
    reported: ReconciliationResult,
    planting: PlantingDataset,
    sides: PlantedSides,
    selected: Column,
) -> tuple[str, ...]:
    """Everything that is not as planted: counts, classes of the examples, records they name."""
    return (
        *_of_counts(planted, reported.counts),
        *_of_examples(planted, reported.findings),
        *_of_records(reported.findings, planting, sides, selected),
    )


def _of_counts(planted: Counts, reported: Counts) -> Iterator[str]:
    for name in dict.fromkeys((*planted, *reported)):
        wanted, found = planted.get(name, 0), reported.get(name)
        # A class that is not of the plants may be left unjudged, but not found.
        if found != wanted and not (name not in planted and found is None):
            yield f"{name}: planted {_number(wanted)}, reported {_number(found)}"


def _of_examples(planted: Counts, findings: Iterable[Finding]) -> Iterator[str]:
    shown = {_class_of(finding) for finding in findings}
    wanted = set(violated_classes(planted))
    if missing := sorted(wanted - shown):
        yield f"no example of {', '.join(missing)}"
    if more := sorted(shown - wanted):
        yield f"examples of {', '.join(more)}, of which nothing was planted"


def _of_records(
    findings: Sequence[Finding], dataset: PlantingDataset, sides: PlantedSides, selected: Column
) -> Iterator[str]:
    """Examples whose records were not planted: the right number of the wrong records."""
    identity = dataset.shape.identity
    named = {_identity(finding, identity) for finding in findings}
    if not named:
        return
    touched = (
        sides.expected.where(selected)
        .select(*identity)
        .unionByName(sides.actual.where(selected).select(*identity))
    )
    same = reduce(or_, (_same(dataset, values) for values in named))
    planted = {tuple(row) for row in touched.where(same).collect()}
    for finding in findings:
        if (values := _identity(finding, identity)) not in planted:
            yield f"an example of {_class_of(finding)} names a record not planted: {values}"


def _same(dataset: PlantingDataset, values: Sequence[Any]) -> Column:
    types = (dataset.frame.schema[name].dataType for name in dataset.shape.identity)
    pairs = zip(dataset.shape.identity, values, types, strict=True)
    return reduce(and_, (F.col(n).eqNullSafe(F.lit(v).cast(kind)) for n, v, kind in pairs))


def _identity(finding: Finding, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(finding.detail[name] for name in names)


def _class_of(finding: Finding) -> str:
    """The class alone: `phantom, though the send was refused` is a phantom."""
    return finding.what.partition(",")[0]


def _number(count: int | None) -> str:
    return "not judged" if count is None else f"{count:,}"
