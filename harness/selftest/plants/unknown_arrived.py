"""A send of unknown result that is in the output: never a violation."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants
from streamquake.harness.selftest.statuses import unknown_status


@plants.register
class UnknownArrived(Plant):
    """The result of the send is unknown, and the record is present."""

    name = "unknown_arrived"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"unknown_arrived": 1, "expected": -1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(
            expected=dataset.expected(unknown_status(selected & first_send())),
            actual=dataset.actual(),
        )
