"""What a plant is: a class of anomaly that is planted into clean data, with its exact counts.

A plant is one file in `harness/selftest/plants/`. It declares how one planted place changes the
counts that must be reported, and it generates the two sides of a cell from a dataset. Places do not
overlap, so their effects add up.
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
    """The expected and the actual records that the judge compares."""

    expected: DataFrame
    actual: DataFrame


class Plant:
    """The base of every plant."""

    name: ClassVar[str]
    units_per_place: ClassVar[int] = 1
    """How many neighbouring units one place has: 1, 2 (a pair of one key), or 8."""
    clean: ClassVar[bool] = False
    """Whether it plants nothing, and therefore has no rate."""
    needs_order: ClassVar[bool] = False
    """Whether it applies only to shapes with a sequence."""
    also: ClassVar[tuple[str, ...]] = ()
    """Classes of `reconcile/anomalies/` that are judged in addition to the usual ones."""

    def effect(self, sends: int) -> Mapping[str, int]:
        """What one place adds to the counts of clean data; `sends` is how often an identity is
        sent."""
        raise NotImplementedError

    def sides(self, dataset: PlantingDataset, selected: Column) -> PlantedSides:
        """Both sides, planted in the rows where `selected` is true."""
        raise NotImplementedError


plants: Registry[Plant] = Registry("plant", "streamquake.harness.selftest.plants", base=Plant)


def first_send() -> Column:
    """Whether a row is the first send of its identity, the one that is planted."""
    return F.col("nth") == 0


def unknown_records(dataset: PlantingDataset, selected: Column) -> DataFrame:
    """The actual side, with the first send of each place turned into an unknown record."""
    return dataset.actual(selected & first_send(), **dataset.shape.unknown_identity())
