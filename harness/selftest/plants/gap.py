"""A key whose sequence lacks a number."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import FAR, PlantingDataset
from streamquake.harness.selftest.plant import (
    Plant,
    PlantedSides,
    first_send,
    plants,
    unknown_records,
)


@plants.register
class Gap(Plant):
    """Two unsent records of a new key, with one number missing between them. (A lost record is a
    gap only if other records of its key are on both sides.)"""

    name = "gap"
    units_per_place = 2
    needs_order = True
    also = ("gap",)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"gap": 1, "phantom": 2, "actual": 2}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        pair = F.expr("cast(unit div 2 as string)")
        unsent = (
            unknown_records(dataset, selected)
            .where(selected & first_send())
            .withColumns(
                {
                    "key": F.concat_ws(" ", F.lit("gap"), pair),
                    "seq": F.col("seq") + F.col("unit") % 2,
                    "offset": F.col("offset") + FAR,
                }
            )
        )
        return PlantedSides(
            expected=dataset.expected(), actual=dataset.actual().unionByName(unsent)
        )
