"""A send of unknown result that came out: never a violation."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants
from streamquake.harness.selftest.statuses import unknown


@plants.register
class UnknownArrived(Plant):
    """Nobody knows whether it was sent, and it is there."""

    name = "unknown_arrived"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"unknown_arrived": 1, "expected": -1}

    def sides(self, dataset: PlantingDataset, hit: Column) -> PlantedSides:
        return PlantedSides(
            expected=dataset.sent(unknown(hit & first_send())), actual=dataset.seen()
        )
