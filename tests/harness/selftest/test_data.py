"""The data: the same for the same seed, and exact enough for the counts of the plants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.selftest.dataset import PlantingDataset, cached_dataset, generate, units_of
from streamquake.harness.selftest.plant import first_send
from streamquake.harness.selftest.shapes import data_shapes
from tests.tiers import others_nightly

UNITS = 240


IN_MAKE_TEST = ("decimals", "nested", "nulls")
"""The kinds of values that differ most; the others are keys and sizes."""


@pytest.fixture(scope="module", params=others_nightly(sorted(data_shapes), IN_MAKE_TEST))
def dataset(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[PlantingDataset]:
    shape = data_shapes[request.param]()
    with cached_dataset(
        spark, shape, seed=3, records=UNITS * shape.sends * shape.weight
    ) as dataset:
        assert dataset.units == UNITS
        yield dataset


def test_the_same_seed_generates_the_same_data_and_another_seed_other_data(
    spark: SparkSession, dataset: PlantingDataset
) -> None:
    again = generate(spark, dataset.shape, seed=3, units=UNITS)
    other = generate(spark, dataset.shape, seed=4, units=UNITS)

    assert _rows(again) == _rows(dataset.frame)
    assert _rows(other) != _rows(dataset.frame)


def test_every_identity_is_sent_as_often_as_the_shape_declares(dataset: PlantingDataset) -> None:
    times = (
        dataset.frame.groupBy(*dataset.shape.identity).count().groupBy("count").count().collect()
    )

    assert [tuple(row) for row in times] == [(dataset.shape.sends, UNITS)]


def test_unknown_records_were_not_sent_and_are_all_different(dataset: PlantingDataset) -> None:
    identity = [
        F.coalesce(F.col(name).cast("string"), F.lit("NULL")) for name in dataset.shape.identity
    ]
    sent = {tuple(row) for row in dataset.frame.select(*identity).collect()}
    replaced = dataset.frame.where(first_send()).withColumns(dict(dataset.shape.unknown_identity()))
    unknown_records = {tuple(row) for row in replaced.select(*identity).collect()}

    assert len(unknown_records) == UNITS
    assert not unknown_records & sent


def test_an_altered_value_differs_and_has_the_same_type(dataset: PlantingDataset) -> None:
    altered = dataset.frame.withColumns(dict(dataset.shape.altered()))

    assert altered.schema == dataset.frame.schema
    for before, after in zip(_rows(dataset.frame), _rows(altered), strict=True):
        assert before != after
        names = {
            name
            for name, one, two in zip(altered.columns, before, after, strict=True)
            if one != two
        }
        assert names <= set(dataset.shape.compare)


def test_sequences_grow_by_one_in_the_order_of_the_offsets(dataset: PlantingDataset) -> None:
    """The two units of every pair are neighbours of one key."""
    rows = dataset.frame.select("key", "seq", "unit", "partition").orderBy("offset").collect()
    last: dict[tuple[str | None, int], int] = {}
    for row in rows:
        before = last.get((row.key, row.partition), -1)
        assert row.seq in (before, before + 1) if dataset.shape.sends > 1 else row.seq == before + 1
        last[row.key, row.partition] = row.seq
    by_unit = {row.unit: (row.key, row.seq) for row in rows}
    for unit in range(0, UNITS, 2):
        key, seq = by_unit[unit]
        assert by_unit[unit + 1] == (key, seq + 1)


def test_ends_are_the_last_units_of_partitions(dataset: PlantingDataset) -> None:
    last: dict[int, int] = {}
    for row in dataset.frame.orderBy("offset").collect():
        last[row.partition] = row.unit

    assert dataset.ends == tuple(sorted(last.values()))
    assert dataset.ends[-1] == UNITS - 1


def test_the_number_of_units_is_a_multiple_of_a_group() -> None:
    shape = data_shapes["resent"]()

    assert [units_of(shape, records) for records in (1, 24, 47, 48, 1000)] == [8, 8, 8, 16, 328]


def _rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.orderBy("unit", "nth").collect()]
