"""`wrong_partition`: a record is in another partition than its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamquake.harness.reconcile.anomaly import Anomaly, AnomalyCount, anomalies
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.examples import MAX_EXAMPLES, finding_at, with_python_types
from streamquake.harness.reconcile.identity_join import same_values
from streamquake.harness.reconcile.shape import Shape

HOME = "home"


@anomalies.register
class WrongPartition(Anomaly):
    """Records in another partition than their key's home. The home has most of the key's records on
    the expected side if that is a topic, else on the actual side (the lowest number of several)."""

    name: ClassVar[str] = "wrong_partition"
    meaning: ClassVar[str] = "in another partition than the key's home"
    requirement: ClassVar[str] = "a topic as the actual side"

    def judge(self, expected: DataFrame, actual: DataFrame, shape: Shape) -> AnomalyCount | None:
        if shape.partition is None or not shape.key:
            return None
        expected_partition = shape.expected_partition
        homes = (
            _homes(actual, shape.key, shape.partition)
            if expected_partition is None
            else _homes(expected, shape.key, expected_partition)
        )
        readable = actual if shape.malformed is None else actual.where(f"NOT {shape.malformed}")
        with_home = (
            readable.alias("a")
            .join(homes.alias("h"), same_values(shape.key, "a", "h"))
            .select("a.*", HOME)
        )
        with persisted(with_home.where(F.col(shape.partition) != F.col(HOME))) as misplaced:
            count = misplaced.count()
            lowest = misplaced.orderBy(*shape.identity, *shape.displayed_place)
            first = with_python_types(lowest).take(MAX_EXAMPLES)
            return AnomalyCount(
                count=count,
                findings=tuple(finding_at(self.name, row, shape, (HOME,)) for row in first),
            )


def _homes(side: DataFrame, key: Sequence[str], partition: str) -> DataFrame:
    """The columns of the key, and `HOME`: the partition with most of the key's records."""
    counts = side.groupBy(*key, partition).agg(F.count(F.lit(1)).alias("records"))
    most = F.max_by(partition, F.struct("records", -F.col(partition)))
    return counts.groupBy(*key).agg(most.alias(HOME))
