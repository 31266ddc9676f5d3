"""`unmatched_retraction`: a record retracts a row that was never inserted."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame

from streamquake.harness.reconcile.anomaly import Anomaly, AnomalyCount, anomalies
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.examples import MAX_EXAMPLES, finding_at, with_python_types
from streamquake.harness.reconcile.retractions import is_retraction, unmatched_records
from streamquake.harness.reconcile.shape import UNMATCHED, Shape


@anomalies.register
class UnmatchedRetraction(Anomaly):
    """Retractions beyond the insertions of the same identity and values.

    The class is judged wherever a condition for retractions is given.
    """

    name: ClassVar[str] = UNMATCHED
    meaning: ClassVar[str] = "retracts a row more often than it was inserted"
    requirement: ClassVar[str] = "a condition for retractions (--retracts)"

    def judge(self, expected: DataFrame, actual: DataFrame, shape: Shape) -> AnomalyCount | None:
        if shape.retracts is None:
            return None
        with persisted(unmatched_records(actual, shape).where(is_retraction(shape))) as rows:
            lowest = rows.orderBy(*shape.identity, *shape.displayed_place)
            first = with_python_types(lowest).take(MAX_EXAMPLES)
            return AnomalyCount(
                count=rows.count(),
                findings=tuple(finding_at(self.name, row, shape, shape.compare) for row in first),
            )
