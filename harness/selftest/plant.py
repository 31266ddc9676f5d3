"""What a plant is: one class of anomaly put into clean data, with its exact account.

A plant is one file in `harness/selftest/plants/`. It states what one planted place changes in the
counts, by what is planted and not by what is found; and it makes the two sides of a cell out of a
dataset. Places do not overlap, so the effects of many add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import PlantingDataset
from streamquake.topologies.registry import Registry


@dataclass(frozen=True, kw_only=True)
class PlantedSides:
    """What the judge is given."""

    expected: DataFrame
    actual: DataFrame


class Plant:
    """The base of every plant."""

    name: ClassVar[str]
    units_per_place: ClassVar[int] = 1
    """How many neighbouring units one place has: 1, or 2 (a pair of one key), or 8."""
    clean: ClassVar[bool] = False
    """Whether it plants nothing, and therefore has no rate."""
    needs_order: ClassVar[bool] = False
    """Whether it means something only where a sequence is judged."""
    also: ClassVar[tuple[str, ...]] = ()
    """Classes of `reconcile/anomalies/` that are judged beside all others."""

    def effect(self, sends: int) -> Mapping[str, int]:
        """What one place adds to the counts of clean data whose identities are sent so often."""
        raise NotImplementedError

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        """Both sides, planted in the rows where `selected` is true."""
        raise NotImplementedError


plants: Registry[Plant] = Registry("plant", "streamquake.harness.selftest.plants")


def first_send() -> Column:
    """The send that is planted where an identity has several."""
    return F.col("nth") == 0


def unknown_records(dataset: PlantingDataset, selected: Column) -> DataFrame:
    """The actual side, with the first send of each place turned into an unknown record."""
    return dataset.seen(selected & first_send(), **dataset.shape.unknown_identity())
