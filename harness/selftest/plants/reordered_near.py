"""Two neighbours of one key in the wrong order."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, plants
from streamquake.harness.selftest.swapped_neighbours import exchanged_offset


@plants.register
class ReorderedNear(Plant):
    """The offsets of a pair are exchanged: one step back."""

    name = "reordered_near"
    units_per_place = 2
    needs_order = True

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"reordered": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(
            expected=dataset.expected(),
            actual=dataset.actual(selected, offset=exchanged_offset(dataset)),
        )
