"""A record that came out under another identity: the one is lost, the other a phantom."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from streamquake.harness.selftest.dataset import Bed
from streamquake.harness.selftest.plant import Plant, Sides, plants, strangers


@plants.register
class ChangedKey(Plant):
    """The identity becomes one that nobody sent; of an identity that is null, an empty one."""

    name = "changed_key"

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"lost": 1, "phantom": 1}

    def sides(self, bed: Bed, hit: Column) -> Sides:
        return Sides(expected=bed.sent(), actual=strangers(bed, hit))
