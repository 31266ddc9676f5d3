"""Every plant: its counts are those of a model in plain Python, and the real judge finds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.reconcile.shape import UNMATCHED
from streamquake.harness.selftest.cell_counts import planted_counts
from streamquake.harness.selftest.cells import QUICK_CHANGES, Cell, all_cells, quick_cells
from streamquake.harness.selftest.changes import RECORDED_RUN
from streamquake.harness.selftest.dataset import PlantingDataset, cached_dataset
from streamquake.harness.selftest.plant import PlantedSides, plants
from streamquake.harness.selftest.result import CellResult
from streamquake.harness.selftest.selftest_runner import Plan, run_selftest
from streamquake.harness.selftest.shapes import data_shapes
from streamquake.reports.record.outcome import Outcome
from tests.harness.reconcile.model import (
    OutputRecord,
    SentRecord,
    counts,
    final_state,
    further_counts,
)

RECORDS = 1600
SEED = 22
"""With this seed the drawn cells include all rates and all shapes."""
PLACES = (0, 3, 7)
"""The planted places: the first, one in the middle, and the last one of a second group."""


@pytest.fixture(scope="module")
def dataset(spark: SparkSession) -> Iterator[PlantingDataset]:
    with cached_dataset(spark, data_shapes["few_keys"](), seed=5, records=RECORDS) as dataset:
        yield dataset


@pytest.fixture(scope="module")
def homes(dataset: PlantingDataset) -> Mapping[str | None, int]:
    """Key -> the partition of its records."""
    return {row.key: row.partition for row in dataset.frame.select("key", "partition").collect()}


@pytest.mark.nightly_after(6)
@pytest.mark.parametrize("name", sorted(plants))
def test_the_counts_are_those_of_a_model_in_plain_python(
    dataset: PlantingDataset, homes: Mapping[str | None, int], name: str
) -> None:
    plant = plants[name]()
    places = 0 if plant.clean else len(PLACES)
    sides = plant.sides(dataset, F.expr(f"unit div {plant.units_per_place}").isin(*PLACES))
    planted = planted_counts(dataset, plant, places)
    sent, output_rows, unmatched = _model_input(sides)
    requested = {**further_counts(sent, output_rows, homes), UNMATCHED: unmatched}

    modelled = {**counts(sent, output_rows), **{name: requested[name] for name in plant.also}}
    assert {**modelled, "malformed": planted["malformed"]} == planted


def test_only_the_clean_plant_changes_no_count(dataset: PlantingDataset) -> None:
    clean = dataset.clean_counts()
    same = [name for name in plants if planted_counts(dataset, plants[name](), 3) == clean]

    assert same == ["clean"]


def test_every_class_is_planted() -> None:
    planted = {name for plant in plants for name in plants[plant]().effect(1)}

    also = {name for plant in plants for name in plants[plant].also}
    assert {*VIOLATIONS, "unknown_arrived", "unknown_absent", "malformed"} <= planted
    assert set(anomalies) == also <= planted


@pytest.mark.nightly
def test_the_judge_finds_exactly_what_is_planted_in_every_shape(spark: SparkSession) -> None:
    """One cell of every shape. `test_sabotage.py` judges one with all classes."""
    of_shape = {cell.shape: cell for cell in quick_cells(RECORDS, SEED)}

    assert {*of_shape} == {*data_shapes, RECORDED_RUN}
    assert_held(spark, list(of_shape.values()))


@pytest.mark.nightly
def test_the_judge_finds_exactly_what_is_planted(spark: SparkSession) -> None:
    """One cell of every class, and at least one of every rate and every shape."""
    drawn = quick_cells(RECORDS, SEED)
    of_class = {cell.plant: cell for cell in drawn}
    shapes = {cell.shape for cell in of_class.values()}
    others = {cell.shape: cell for cell in drawn if cell.shape not in shapes}
    cells = [*of_class.values(), *others.values()]

    changed = {cell.plant for cell in cells if cell.shape == RECORDED_RUN}
    assert set(of_class) == {*plants, *changed}
    assert len(changed) == QUICK_CHANGES
    assert {cell.shape for cell in cells} == {*data_shapes, RECORDED_RUN}
    assert {cell.rate for cell in cells} == {cell.rate for cell in all_cells(RECORDS)}
    assert_held(spark, cells)


def assert_held(spark: SparkSession, cells: Sequence[Cell]) -> None:
    """Judge the cells; each must be held, and shown once."""
    recorded: list[CellResult] = []
    plan = Plan(seed=SEED, records=RECORDS, cells=tuple(cells), again="")

    results = run_selftest(plan, spark, show_result=recorded.append)

    assert {result.cell for result in results.cells} == set(cells)
    assert list(results.cells) == recorded
    for result in results.cells:
        assert (result.outcome, result.differences, result.error) == (Outcome.HELD, (), ""), result


def _model_input(sides: PlantedSides) -> tuple[list[SentRecord], list[OutputRecord], int]:
    """The rows as input of the model, both compared values as one number: the sends, the records
    left in the output, and the number of unmatched retractions."""
    value = F.col("amount") * (1 << 33) + F.col("checksum")
    sent = sides.expected.select("key", "seq", value, "status").collect()
    actual = sides.actual
    is_retraction = F.col("retracts") if "retracts" in actual.columns else F.lit(False)
    output_rows = actual.select("key", "seq", value, "partition", "offset", is_retraction).collect()
    inserted = [OutputRecord(*row[:-1]) for row in output_rows if not row[-1]]
    retracted = [OutputRecord(*row[:-1]) for row in output_rows if row[-1]]
    left, unmatched = final_state(inserted, retracted)
    return [SentRecord(*row) for row in sent], left, unmatched
