"""Planting rates: how many places each rate selects, and which."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamquake.harness.selftest.rates import RATES, PlantingPlaces

POPULATIONS = (1, 2, 999, 1000, 2500, 2_100_000)


@pytest.mark.parametrize("population", POPULATIONS)
def test_a_rate_plants_as_many_places_as_it_counts(spark: SparkSession, population: int) -> None:
    places = PlantingPlaces(population=population, seed="7", end=population // 2)
    fitting = {name: rate for name, rate in RATES.items() if rate.count(population)}
    sums = (
        F.count_if(rate.is_planted(F.col("id"), places)).alias(name)
        for name, rate in fitting.items()
    )
    row = spark.range(population).agg(*sums).first()

    assert row is not None
    assert row.asDict() == {name: rate.count(population) for name, rate in fitting.items()}


def test_each_rate_plants_its_own_places(spark: SparkSession) -> None:
    places = PlantingPlaces(population=6400, seed="7", end=41)

    def planted(name: str) -> list[int]:
        where = RATES[name].is_planted(F.col("id"), places)
        return [row.id for row in spark.range(places.population).where(where).collect()]

    assert (planted("first"), planted("last"), planted("partition_end")) == ([0], [6399], [41])
    block = planted("block")
    assert block == list(range(block[0], block[0] + 100))
    one_per_interval = planted("one_in_1000")
    assert [place // 1000 for place in one_per_interval] == [0, 1, 2, 3, 4, 5]
    assert len({place % 1000 for place in one_per_interval}) == 6


def test_another_seed_draws_other_places(spark: SparkSession) -> None:
    draws = {
        PlantingPlaces(population=10_000, seed=str(seed), end=0).draw(10_000) for seed in range(20)
    }

    assert len(draws) > 15
