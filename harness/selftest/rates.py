"""Rates: how many spots are planted, and which.

A spot is what one plant takes: a unit, a pair, or a group of them (see `Plant.spot`). Which spots
are taken is decided inside Spark; how many they are follows from the numbers alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

BLOCK_SHARE = 64
"""A block takes one of so many spots: enough to span tasks, too few to make every bucket dirty."""


@dataclass(frozen=True, kw_only=True)
class PlantingSpots:
    """Where can be planted: spots 0 to `population` - 1, of which `end` ends a partition."""

    population: int
    seed: str
    end: int

    def drawn(self, below: int) -> int:
        """A number from 0 to before `below`, always the same one for a seed."""
        return random.Random(self.seed).randrange(below)


@dataclass(frozen=True, kw_only=True)
class PlantingRate:
    """`count` says how many of a population are taken, 0 where the rate does not fit it;
    `chosen`, whether a spot is."""

    name: str
    message: str
    count: Callable[[int], int]
    chosen: Callable[[Column, PlantingSpots], Column]


def _single(name: str, message: str, at: Callable[[PlantingSpots], int]) -> PlantingRate:
    return PlantingRate(
        name=name,
        message=message,
        count=lambda population: min(population, 1),
        chosen=lambda spot, spots: spot == at(spots),
    )


def _one_in(each: int, message: str) -> PlantingRate:
    def chosen(spot: Column, spots: PlantingSpots) -> Column:
        # One of every full stretch, anywhere in it: a fixed step would keep to a few keys.
        interval = spot - spot % each
        drawn = F.pmod(F.xxhash64(F.lit(spots.drawn(1 << 31)), interval), F.lit(each))
        full = spots.population // each * each
        return (spot < full) & (spot % each == drawn)

    return PlantingRate(
        name=f"one_in_{each}",
        message=message,
        count=lambda population: population // each,
        chosen=chosen,
    )


def _block_size(population: int) -> int:
    return max(1, population // BLOCK_SHARE)


def _in_block(spot: Column, spots: PlantingSpots) -> Column:
    size = _block_size(spots.population)
    first = spots.drawn(spots.population - size + 1)
    return spot.between(first, first + size - 1)


NOTHING = PlantingRate(
    name="none", message="none", count=lambda population: 0, chosen=lambda spot, spots: F.lit(False)
)
"""For clean data."""

RATES: Mapping[str, PlantingRate] = {
    rate.name: rate
    for rate in (
        _single("one", "one", lambda spots: spots.drawn(spots.population)),
        _one_in(1_000_000, "1 in 10⁶"),
        _one_in(1_000, "1 in 10³"),
        PlantingRate(name="block", message="block", count=_block_size, chosen=_in_block),
        _single("first", "first", lambda spots: 0),
        _single("last", "last", lambda spots: spots.population - 1),
        _single("partition_end", "part. end", lambda spots: spots.end),
    )
}
