"""A send of unknown result that did not come out: never a violation."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants
from streamquake.harness.selftest.statuses import unknown


@plants.register
class UnknownAbsent(Plant):
    """Nobody knows whether it was sent, and it is not there."""

    name = "unknown_absent"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"unknown_absent": 1, "expected": -1, "actual": -1}

    def sides(self, dataset: PlantingDataset, hit: Column) -> PlantedSides:
        there = dataset.seen().where(~(hit & first_send()))
        return PlantedSides(expected=dataset.sent(unknown(hit & first_send())), actual=there)
