"""A refused send that is not in the output, as it should be."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, plants
from streamquake.harness.selftest.statuses import refused


@plants.register
class RefusedAbsent(Plant):
    """All sends of an identity failed, and are absent; nothing may be found."""

    name = "refused_absent"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"expected": -sends, "actual": -sends}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        return PlantedSides(
            expected=dataset.sent(refused(selected)), actual=dataset.seen().where(~selected)
        )
