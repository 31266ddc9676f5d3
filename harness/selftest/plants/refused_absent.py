"""A failed send that is not in the output: not a violation."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, plants
from streamquake.harness.selftest.statuses import rejected_status


@plants.register
class RefusedAbsent(Plant):
    """All sends of an identity failed, and the output does not contain them."""

    name = "refused_absent"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"expected": -sends, "actual": -sends}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(
            expected=dataset.expected(rejected_status(selected)),
            actual=dataset.actual().where(~selected),
        )
