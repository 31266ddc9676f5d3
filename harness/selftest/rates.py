"""Planting rates: how many places are planted, and which.

A place is the units that one anomaly occupies: a unit, a pair, or a group of them (see
`Plant.units_per_place`). A rate selects places inside Spark; it computes their number in Python.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

BLOCK_SHARE = 64
"""A block is this part of all places: enough to span tasks, too few to touch every bucket of the
reconciliation."""


@dataclass(frozen=True, kw_only=True)
class PlantingPlaces:
    """The places that can be planted: 0 to `population` - 1, of which `end` ends a partition."""

    population: int
    seed: str
    end: int

    def draw(self, below: int) -> int:
        """A random number from 0 to `below` - 1, the same for the same seed."""
        return random.Random(self.seed).randrange(below)


@dataclass(frozen=True, kw_only=True)
class PlantingRate:
    """`count` returns how many places of a population are planted, 0 if the population is too
    small; `is_planted` selects them. `label` is the column in the table."""

    name: str
    label: str
    count: Callable[[int], int]
    is_planted: Callable[[Column, PlantingPlaces], Column]


def _single(name: str, label: str, at: Callable[[PlantingPlaces], int]) -> PlantingRate:
    return PlantingRate(
        name=name,
        label=label,
        count=lambda population: min(population, 1),
        is_planted=lambda place, places: place == at(places),
    )


def _one_in(interval: int, label: str) -> PlantingRate:
    def is_planted(place: Column, places: PlantingPlaces) -> Column:
        # One random place of every full interval: a fixed step would select few keys only.
        start = place - place % interval
        drawn = F.pmod(F.xxhash64(F.lit(places.draw(1 << 31)), start), F.lit(interval))
        full = places.population // interval * interval
        return (place < full) & (place % interval == drawn)

    return PlantingRate(
        name=f"one_in_{interval}",
        label=label,
        count=lambda population: population // interval,
        is_planted=is_planted,
    )


def _block_size(population: int) -> int:
    return max(1, population // BLOCK_SHARE)


def _in_block(place: Column, places: PlantingPlaces) -> Column:
    size = _block_size(places.population)
    first = places.draw(places.population - size + 1)
    return place.between(first, first + size - 1)


NOTHING = PlantingRate(
    name="none",
    label="none",
    count=lambda population: 0,
    is_planted=lambda place, places: F.lit(False),
)
"""The rate of clean data."""

RATES: Mapping[str, PlantingRate] = {
    rate.name: rate
    for rate in (
        _single("one", "one", lambda places: places.draw(places.population)),
        _one_in(1_000_000, "1 in 10⁶"),
        _one_in(1_000, "1 in 10³"),
        PlantingRate(name="block", label="block", count=_block_size, is_planted=_in_block),
        _single("first", "first", lambda places: 0),
        _single("last", "last", lambda places: places.population - 1),
        _single("partition_end", "part. end", lambda places: places.end),
    )
}
