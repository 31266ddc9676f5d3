"""A record that moved to the end of its partition."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import FAR, PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, plants


@plants.register
class ReorderedFar(Plant):
    """The first record of each pair moves to the end of the partition, in reverse order: each is
    one step back, from the other record of its pair or from the record moved before it."""

    name = "reordered_far"
    units_per_place = 2
    needs_order = True

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"reordered": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        moved = selected & (F.col("unit") % 2 == 0)
        return PlantedSides(
            expected=dataset.expected(),
            actual=dataset.actual(moved, offset=F.lit(2 * FAR) - F.col("offset")),
        )
