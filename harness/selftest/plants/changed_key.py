"""A record with another identity in the output: one is lost, the other a phantom."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, plants, unknown_records


@plants.register
class ChangedKey(Plant):
    """The identity is replaced by one that was not sent; a null identity by an empty one."""

    name = "changed_key"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"lost": 1, "phantom": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(expected=dataset.expected(), actual=unknown_records(dataset, selected))
