"""The data: the same for the same seed, and as exact as the accounts of the plants need it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import PlantingDataset, made, stored, units_of
from streamquake.harness.selftest.plant import first_send
from streamquake.harness.selftest.shapes import data_shapes

UNITS = 240


@pytest.fixture(params=sorted(data_shapes))
def planting(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[PlantingDataset]:
    shape = data_shapes[request.param]()
    with stored(spark, shape, seed=3, records=UNITS * shape.sends * shape.weight) as dataset:
        assert dataset.units == UNITS
        yield dataset


def test_same_seed_same_data_and_another_seed_other_data(
    spark: SparkSession, planting: PlantingDataset
) -> None:
    again = made(spark, planting.shape, seed=3, units=UNITS)
    other = made(spark, planting.shape, seed=4, units=UNITS)

    assert _rows(again) == _rows(planting.frame)
    assert _rows(other) != _rows(planting.frame)


def test_every_identity_is_sent_as_often_as_the_shape_declares(planting: PlantingDataset) -> None:
    times = (
        planting.frame.groupBy(*planting.shape.identity).count().groupBy("count").count().collect()
    )

    assert [tuple(row) for row in times] == [(planting.shape.sends, UNITS)]


def test_unknown_records_were_not_sent_and_are_all_different(planting: PlantingDataset) -> None:
    identity = [
        F.coalesce(F.col(name).cast("string"), F.lit("NULL")) for name in planting.shape.identity
    ]
    sent = {tuple(row) for row in planting.frame.select(*identity).collect()}
    turned = planting.frame.where(first_send()).withColumns(dict(planting.shape.unknown_identity()))
    unknown_records = {tuple(row) for row in turned.select(*identity).collect()}

    assert len(unknown_records) == UNITS
    assert not unknown_records & sent


def test_what_is_altered_is_another_value_of_the_same_type(planting: PlantingDataset) -> None:
    altered = planting.frame.withColumns(dict(planting.shape.altered()))

    assert altered.schema == planting.frame.schema
    for before, after in zip(_rows(planting.frame), _rows(altered), strict=True):
        assert before != after
        names = {
            name
            for name, one, two in zip(altered.columns, before, after, strict=True)
            if one != two
        }
        assert names <= set(planting.shape.compare)


def test_sequences_grow_by_one_in_the_order_of_the_places(planting: PlantingDataset) -> None:
    """And of every pair of units both are of one key, next to each other."""
    rows = planting.frame.select("key", "seq", "unit", "partition").orderBy("offset").collect()
    last: dict[tuple[str | None, int], int] = {}
    for row in rows:
        before = last.get((row.key, row.partition), -1)
        assert (
            row.seq in (before, before + 1) if planting.shape.sends > 1 else row.seq == before + 1
        )
        last[row.key, row.partition] = row.seq
    by_unit = {row.unit: (row.key, row.seq) for row in rows}
    for unit in range(0, UNITS, 2):
        key, seq = by_unit[unit]
        assert by_unit[unit + 1] == (key, seq + 1)


def test_ends_are_the_last_units_of_partitions(planting: PlantingDataset) -> None:
    last: dict[int, int] = {}
    for row in planting.frame.orderBy("offset").collect():
        last[row.partition] = row.unit

    assert planting.ends == tuple(sorted(last.values()))
    assert planting.ends[-1] == UNITS - 1


def test_units_come_in_full_groups() -> None:
    shape = data_shapes["resent"]()

    assert [units_of(shape, records) for records in (1, 24, 47, 48, 1000)] == [8, 8, 8, 16, 328]


def _rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.orderBy("unit", "nth").collect()]
