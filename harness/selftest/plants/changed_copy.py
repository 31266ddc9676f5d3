"""A record that is in the output twice, the second time changed: it counts in two classes."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants


@plants.register
class ChangedCopy(Plant):
    """A copy right after the first, with a checksum that was not sent."""

    name = "changed_copy"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"duplicated": 1, "changed": 1, "actual": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        actual = dataset.actual()
        copy = actual.where(selected & first_send()).withColumns(
            {"checksum": F.col("checksum").bitwiseXOR(F.lit(1)), "offset": F.col("offset") + 1}
        )
        return PlantedSides(expected=dataset.expected(), actual=actual.unionByName(copy))
