"""Nothing is planted: what is the same must be found the same."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, plants


@plants.register
class Clean(Plant):
    """Both sides are the same."""

    name = "clean"
    clean = True

    def effect(self, sends: int) -> Mapping[str, int]:
        return {}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(expected=dataset.sent(), actual=dataset.seen())
