"""A record that was acknowledged and is not in the output."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants


@plants.register
class Lost(Plant):
    """One copy is removed."""

    name = "lost"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"lost": 1, "actual": -1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(
            expected=dataset.expected(), actual=dataset.actual().where(~(selected & first_send()))
        )
