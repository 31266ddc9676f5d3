"""A record that appears again after the next one of its key."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import OFFSET_STEP, PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants


@plants.register
class Regression(Plant):
    """The first of a pair appears again right after the second: a copy, and one step back."""

    name = "regression"
    units_per_place = 2
    needs_order = True
    also = ("regression",)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"regression": 1, "duplicated": 1, "actual": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        actual = dataset.actual()
        first = selected & first_send() & (F.col("unit") % 2 == 0)
        behind = F.col("offset") + dataset.shape.sends * OFFSET_STEP + 1
        copy = actual.where(first).withColumn("offset", behind)
        return PlantedSides(expected=dataset.expected(), actual=actual.unionByName(copy))
