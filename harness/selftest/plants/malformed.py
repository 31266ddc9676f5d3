"""A record that cannot be read in the output."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.harness.selftest.plant import Plant, PlantedSides, first_send, plants


@plants.register
class Malformed(Plant):
    """Half a JSON document replaces a record: the record is lost, and a phantom is present."""

    name = "malformed"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"lost": 1, "phantom": 1, "malformed": 1}

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        nulls = {
            name: F.lit(None).cast(dataset.frame.schema[name].dataType)
            for name in {*dataset.shape.identity, *dataset.shape.compare, "key", "seq"}
        }
        half = F.concat(F.lit('{"unit":'), F.col("unit").cast("string"))
        actual = dataset.actual(selected & first_send(), **nulls, malformed=F.lit(True), raw=half)
        return PlantedSides(expected=dataset.expected(), actual=actual)
