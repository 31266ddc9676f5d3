"""`regression`: the sequence of a key decreases, for any reason."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame

from streamquake.harness.reconcile.anomaly import Anomaly, AnomalyCount, anomalies
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.examples import reordered_examples
from streamquake.harness.reconcile.order import records_out_of_order
from streamquake.harness.reconcile.shape import Shape


@anomalies.register
class Regression(Anomaly):
    """Records whose sequence is lower than that of the record just before them in the same key, on
    the actual side alone. Unlike for `reordered`, copies and phantoms count too."""

    name: ClassVar[str] = "regression"
    meaning: ClassVar[str] = "the sequence of a key decreases; copies and phantoms count too"
    requirement: ClassVar[str] = "a sequence, and an order of all records (--order, or a topic)"

    def judge(self, expected: DataFrame, actual: DataFrame, shape: Shape) -> AnomalyCount | None:
        if not shape.judges_order:
            return None
        if shape.unplaced is not None and not actual.where(shape.unplaced).isEmpty():
            return None
        with persisted(records_out_of_order(actual, shape)) as out_of_order:
            count = out_of_order.count()
            findings = (
                reordered_examples(out_of_order, actual, shape, what=self.name) if count else ()
            )
            return AnomalyCount(count=count, findings=findings)
