"""Rates: as many places are chosen as the numbers require, and where they should be."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamquake.harness.selftest.rates import RATES, PlantingPlaces

POPULATIONS = (1, 2, 999, 1000, 2500, 2_100_000)


@pytest.mark.parametrize("population", POPULATIONS)
def test_as_many_places_are_chosen_as_the_numbers_require(
    spark: SparkSession, population: int
) -> None:
    places = PlantingPlaces(population=population, seed="7", end=population // 2)
    fitting = {name: rate for name, rate in RATES.items() if rate.count(population)}
    sums = (
        F.count_if(rate.chosen(F.col("id"), places)).alias(name) for name, rate in fitting.items()
    )
    row = spark.range(population).agg(*sums).first()

    assert row is not None
    assert row.asDict() == {name: rate.count(population) for name, rate in fitting.items()}


def test_places_are_where_the_rate_puts_them(spark: SparkSession) -> None:
    places = PlantingPlaces(population=6400, seed="7", end=41)

    def chosen(name: str) -> list[int]:
        where = RATES[name].chosen(F.col("id"), places)
        return [row.id for row in spark.range(places.population).where(where).collect()]

    assert (chosen("first"), chosen("last"), chosen("partition_end")) == ([0], [6399], [41])
    block = chosen("block")
    assert block == list(range(block[0], block[0] + 100))
    each = chosen("one_in_1000")
    assert [place // 1000 for place in each] == [0, 1, 2, 3, 4, 5]
    assert len({place % 1000 for place in each}) == 6


def test_another_seed_chooses_others(spark: SparkSession) -> None:
    drawn = {
        PlantingPlaces(population=10_000, seed=str(seed), end=0).drawn(10_000) for seed in range(20)
    }

    assert len(drawn) > 15
