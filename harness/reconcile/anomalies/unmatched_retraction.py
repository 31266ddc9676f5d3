"""`unmatched_retraction`: a record takes back what nobody said."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from streamquake.harness.reconcile.anomaly import Anomaly, AnomalyCount, anomalies
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.shape import UNMATCHED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamquake.harness.reconcile.shape import Shape


@anomalies.register
class UnmatchedRetraction(Anomaly):
    """Records that take back others, beyond those that the same identity and values were said by.

    It is judged wherever something says which records take others back.
    """

    name: ClassVar[str] = UNMATCHED
    means: ClassVar[str] = "takes back what was not said, or not so often"
    needs: ClassVar[str] = "what says which records take others back (--retracts)"

    def judge(self, expected: DataFrame, actual: DataFrame, shape: Shape) -> AnomalyCount | None:
        from streamquake.harness.reconcile.examples import MAX_EXAMPLES, finding_at, for_python
        from streamquake.harness.reconcile.retractions import is_retraction, unmatched_records

        if shape.retracts is None:
            return None
        with persisted(unmatched_records(actual, shape).where(is_retraction(shape))) as rows:
            lowest = rows.orderBy(*shape.identity, *shape.shown)
            first = for_python(lowest).take(MAX_EXAMPLES)
            return AnomalyCount(
                count=rows.count(),
                findings=tuple(finding_at(self.name, row, shape, shape.compare) for row in first),
            )
