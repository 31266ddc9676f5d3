"""A record that is in the output although its send failed."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, plants
from streamquake.harness.selftest.statuses import rejected_status


@plants.register
class PhantomRefused(Plant):
    """All sends of an identity failed, and the output contains them."""

    name = "phantom_refused"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"phantom": sends, "expected": -sends}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(
            expected=dataset.expected(rejected_status(selected)), actual=dataset.actual()
        )
