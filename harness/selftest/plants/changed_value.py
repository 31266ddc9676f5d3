"""A record with another value in the output."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants


@plants.register
class ChangedValue(Plant):
    """A value is changed as little as possible; with several sends, one has the value of
    another."""

    name = "changed_value"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"changed": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(
            expected=dataset.expected(),
            actual=dataset.actual(selected & first_send(), **dataset.shape.altered()),
        )
