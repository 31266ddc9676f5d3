"""`gap`: sequence numbers that are missing between two records of a key."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, IntegralType, StringType, StructType

from streamquake.harness.reconcile.anomaly import Anomaly, AnomalyCount, anomalies
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.examples import MAX_EXAMPLES, finding_at, with_python_types
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.reconcile.values.rank import rank_of_text
from streamquake.reports.record.outcome import Finding


@anomalies.register
class Gap(Anomaly):
    """Numbers that are missing in the sequence of a key, on the actual side alone."""

    name: ClassVar[str] = "gap"
    meaning: ClassVar[str] = "sequence numbers missing between two records of a key"
    requirement: ClassVar[str] = "a sequence of whole numbers"

    def judge(self, expected: DataFrame, actual: DataFrame, shape: Shape) -> AnomalyCount | None:
        if shape.sequence is None:
            return None
        number = _whole_numbers(F.col(shape.sequence), actual.schema[shape.sequence].dataType)
        numbered = F.isnotnull(shape.sequence)
        if number is None or not actual.where(numbered & F.isnull(number)).isEmpty():
            return None
        stream = Window.partitionBy(*shape.key).orderBy(number)
        jumps = actual.where(numbered).withColumns(
            {"after": F.lag(number).over(stream), "absent": number - F.lag(number).over(stream) - 1}
        )
        with persisted(jumps.where("absent > 0")) as jumps:
            row = jumps.agg(F.coalesce(F.sum("absent"), F.lit(0)).alias("numbers")).first()
            assert row is not None
            lowest = with_python_types(jumps.orderBy(*shape.key, "after"))
            first = lowest.take(MAX_EXAMPLES) if row.numbers else []
            findings = (finding_at(self.name, row, shape, ()) for row in first)
            return AnomalyCount(
                count=int(row.numbers), findings=tuple(map(_with_jump, findings, first))
            )


def _with_jump(finding: Finding, row: Row) -> Finding:
    jump = {"after": int(row.after), "absent": int(row.absent)}
    return replace(finding, detail={**finding.detail, **jump})


def _whole_numbers(sequence: Column, kind: DataType) -> Column | None:
    """The sequence as whole numbers, null where it is none. None where its type has none."""
    if isinstance(kind, IntegralType) or (isinstance(kind, DecimalType) and kind.scale == 0):
        return sequence.cast("decimal(38,0)")
    if isinstance(kind, StringType):
        return _whole_part(rank_of_text(sequence))
    if isinstance(kind, StructType) and "number" in kind.names:
        return _whole_part(sequence)
    return None


def _whole_part(rank: Column) -> Column:
    """The number of a rank; null where it is no whole number."""
    return F.when(F.coalesce(rank["fraction"], F.lit(0)) == 0, rank["number"])
