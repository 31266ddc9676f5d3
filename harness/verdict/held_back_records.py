"""Records that were written, and that no reader of committed records can read.

An open transaction holds back all later records of its partition: the last stable offset does not
pass it. If it never ends (a hanging transaction), even records committed later stay invisible. They
count as lost; finding them attributes the loss to the open transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.outputs import Output
from streamquake.harness.reconcile.identity_join import same_values
from streamquake.harness.reconcile.result import Differences
from streamquake.harness.verdict.expected_output import held_back_of
from streamquake.reports.record.outcome import Finding


@dataclass(frozen=True, kw_only=True)
class HeldBackRecords:
    """How many acknowledged records are only behind the last stable offset, and in which
    partitions."""

    records: int
    findings: tuple[Finding, ...] = ()


def find_held_back(
    case: JudgedRun,
    name: str,
    output: Output,
    expected: DataFrame,
    facts: Mapping[str, Any],
    wrong: Differences,
) -> HeldBackRecords:
    """The lost records that an open transaction holds back. `facts` are those of the reading of the
    topic; `wrong` has the lost records."""
    behind = {
        int(partition): (stable, facts["ends"][partition])
        for partition, stable in facts["stable_ends"].items()
        if stable < facts["ends"][partition]
    }
    if not behind:
        return HeldBackRecords(records=0)
    shape = wrong.shape
    lost = wrong.found.where("lost > 0").alias("l")
    held_back = held_back_of(
        case, name, output, expected, {n: first for n, (first, _) in behind.items()}
    )
    found = (
        held_back.alias("t")
        .join(lost, same_values(shape.identity, "l", "t"), "semi")
        .dropDuplicates([*shape.identity])
    )
    counts = found.groupBy(*shape.lane).agg(F.count(F.lit(1)).alias("records")).collect()
    return HeldBackRecords(
        records=sum(row.records for row in counts),
        findings=tuple(
            Finding(
                what="invisible",
                where=f"partition {row[0]}, behind the last stable offset {behind[row[0]][0]}",
                detail={"behind": row.records, "end": behind[row[0]][1]},
            )
            for row in sorted(counts)
        ),
    )
