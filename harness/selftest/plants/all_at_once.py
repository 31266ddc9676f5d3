"""Every class at once, each in one of eight neighbouring records."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.reconcile.row_hashes import ACKNOWLEDGED, FAILED, UNKNOWN
from streamquake.harness.selftest.dataset import FAR, GROUP, PlantingDataset
from streamquake.harness.selftest.plant import (
    Plant,
    PlantedSides,
    first_send,
    plants,
    unknown_records,
)
from streamquake.harness.selftest.swapped_neighbours import exchanged_offset

LOST, REPEATED, CHANGED, REJECTED, ABSENT, COPIED = range(6)
"""The number of the unit of each anomaly in a group; the last two units are exchanged."""


@plants.register
class AllAtOnce(Plant):
    """Of eight neighbours one is lost, one repeated, one changed, one failed but present, one has
    an unknown result and is absent, one is followed by an unknown record, and two are exchanged."""

    name = "all_at_once"
    units_per_place = GROUP
    needs_order = True

    def effect(self, sends: int) -> Mapping[str, int]:
        return {
            "lost": 1,
            "duplicated": 1,
            "changed": 1,
            "phantom": sends + 1,
            "reordered": 1,
            "unknown_absent": 1,
            "expected": -sends - 1,
            "actual": 0,
        }

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        def is_unit(number: int) -> Column:
            return selected & (F.col("unit") % GROUP == number)

        rejected, absent = is_unit(REJECTED), is_unit(ABSENT) & first_send()
        status = F.when(rejected, FAILED).when(absent, UNKNOWN).otherwise(ACKNOWLEDGED)
        is_present = ~(is_unit(LOST) & first_send()) & ~absent
        in_pair = selected & (F.col("unit") % GROUP > COPIED)
        offset = F.when(in_pair, exchanged_offset(dataset)).otherwise(F.col("offset"))
        changed = is_unit(CHANGED) & first_send()
        actual = (
            dataset.actual(changed, **dataset.shape.altered())
            .where(is_present)
            .withColumn("offset", offset)
        )
        repeated = dataset.actual().where(is_unit(REPEATED) & first_send())
        unsent = unknown_records(dataset, selected).where(is_unit(COPIED) & first_send())
        late = repeated.unionByName(unsent).withColumn("offset", F.col("offset") + FAR)
        return PlantedSides(expected=dataset.expected(status), actual=actual.unionByName(late))
