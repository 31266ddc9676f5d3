"""A send of unknown result that is not in the output: never a violation."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants
from streamquake.harness.selftest.statuses import unknown_status


@plants.register
class UnknownAbsent(Plant):
    """The result of the send is unknown, and the record is absent."""

    name = "unknown_absent"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"unknown_absent": 1, "expected": -1, "actual": -1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        present = dataset.actual().where(~(selected & first_send()))
        return PlantedSides(
            expected=dataset.expected(unknown_status(selected & first_send())), actual=present
        )
