"""A send of unknown result that is in the output: never a violation."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants
from streamquake.harness.selftest.statuses import unknown


@plants.register
class UnknownArrived(Plant):
    """It is unknown whether it was sent, and it is present."""

    name = "unknown_arrived"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"unknown_arrived": 1, "expected": -1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(
            expected=dataset.sent(unknown(selected & first_send())), actual=dataset.seen()
        )
