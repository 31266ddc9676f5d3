"""Rates: how many places are planted, and which.

A place is what one plant takes: a unit, a pair, or a group of them (see
`Plant.units_per_place`). Which places are taken is decided inside Spark; how many follows from the
numbers alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

BLOCK_SHARE = 64
"""A block takes one of so many places: enough to span tasks, too few to make every bucket dirty."""


@dataclass(frozen=True, kw_only=True)
class PlantingPlaces:
    """The places that can be planted: 0 to `population` - 1, of which `end` ends a partition."""

    population: int
    seed: str
    end: int

    def drawn(self, below: int) -> int:
        """A number from 0 to before `below`, always the same one for a seed."""
        return random.Random(self.seed).randrange(below)


@dataclass(frozen=True, kw_only=True)
class PlantingRate:
    """`count` is how many of a population are taken, 0 where the rate does not fit it;
    `chosen`, whether a place is."""

    name: str
    message: str
    count: Callable[[int], int]
    chosen: Callable[[Column, PlantingPlaces], Column]


def _single(name: str, message: str, at: Callable[[PlantingPlaces], int]) -> PlantingRate:
    return PlantingRate(
        name=name,
        message=message,
        count=lambda population: min(population, 1),
        chosen=lambda place, places: place == at(places),
    )


def _one_in(each: int, message: str) -> PlantingRate:
    def chosen(place: Column, places: PlantingPlaces) -> Column:
        # One of every full stretch, anywhere in it: a fixed step would keep to a few keys.
        interval = place - place % each
        drawn = F.pmod(F.xxhash64(F.lit(places.drawn(1 << 31)), interval), F.lit(each))
        full = places.population // each * each
        return (place < full) & (place % each == drawn)

    return PlantingRate(
        name=f"one_in_{each}",
        message=message,
        count=lambda population: population // each,
        chosen=chosen,
    )


def _block_size(population: int) -> int:
    return max(1, population // BLOCK_SHARE)


def _in_block(place: Column, places: PlantingPlaces) -> Column:
    size = _block_size(places.population)
    first = places.drawn(places.population - size + 1)
    return place.between(first, first + size - 1)


NOTHING = PlantingRate(
    name="none",
    message="none",
    count=lambda population: 0,
    chosen=lambda place, places: F.lit(False),
)
"""For clean data."""

RATES: Mapping[str, PlantingRate] = {
    rate.name: rate
    for rate in (
        _single("one", "one", lambda places: places.drawn(places.population)),
        _one_in(1_000_000, "1 in 10⁶"),
        _one_in(1_000, "1 in 10³"),
        PlantingRate(name="block", message="block", count=_block_size, chosen=_in_block),
        _single("first", "first", lambda places: 0),
        _single("last", "last", lambda places: places.population - 1),
        _single("partition_end", "part. end", lambda places: places.end),
    )
}
