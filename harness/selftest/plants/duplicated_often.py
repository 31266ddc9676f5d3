"""A record that is in the output many times in a row."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants

EXTRA = 5


@plants.register
class DuplicatedOften(Plant):
    """Five more copies right after the first."""

    name = "duplicated_often"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"duplicated": EXTRA, "actual": EXTRA}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        actual = dataset.actual()
        number = F.explode(F.sequence(F.lit(1), F.lit(EXTRA)))
        copies = actual.where(selected & first_send()).withColumn("copy", number)
        copies = copies.withColumn("offset", F.col("offset") + F.col("copy")).drop("copy")
        return PlantedSides(expected=dataset.expected(), actual=actual.unionByName(copies))
