"""Nothing is planted: equal sides must be found equal."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, plants


@plants.register
class Clean(Plant):
    """Both sides are equal."""

    name = "clean"
    clean = True

    def effect(self, sends: int) -> Mapping[str, int]:
        return {}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(expected=dataset.expected(), actual=dataset.actual())
