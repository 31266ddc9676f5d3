"""A record whose checksum differs in the output, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants


@plants.register
class ChangedChecksum(Plant):
    """The last bit of the checksum is flipped."""

    name = "changed_checksum"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"changed": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        other = F.col("checksum").bitwiseXOR(F.lit(1))
        return PlantedSides(
            expected=dataset.expected(),
            actual=dataset.actual(selected & first_send(), checksum=other),
        )
