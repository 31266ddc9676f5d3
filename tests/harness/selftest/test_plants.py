"""Every plant: its account is right by a model of its own, and the real judge finds it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.reconcile.shape import UNMATCHED
from streamquake.harness.selftest.cell_counts import planted_counts
from streamquake.harness.selftest.cells import QUICK_CHANGES, all_cells, quick
from streamquake.harness.selftest.changes import RECORDED_RUN
from streamquake.harness.selftest.dataset import PlantingDataset, stored
from streamquake.harness.selftest.plant import PlantedSides, plants
from streamquake.harness.selftest.result import CellResult
from streamquake.harness.selftest.selftest_runner import Plan, conduct
from streamquake.harness.selftest.shapes import data_shapes
from streamquake.reports.record.outcome import Outcome
from tests.harness.reconcile.model import BatchWindow, Sent, asked_for, counts, stands

RECORDS = 1600
SEED = 22
"""Of which the cells drawn for the classes are of all rates and all shapes."""
TAKEN = (0, 3, 7)
"""Places that are planted: the first, one in the middle, and the last one of a second group."""


@pytest.fixture(scope="module")
def planting(spark: SparkSession) -> Iterator[PlantingDataset]:
    with stored(spark, data_shapes["few_keys"](), seed=5, records=RECORDS) as dataset:
        yield dataset


@pytest.mark.parametrize("name", sorted(plants))
def test_the_account_is_that_of_a_model_in_plain_python(
    planting: PlantingDataset, name: str
) -> None:
    plant = plants[name]()
    places = 0 if plant.clean else len(TAKEN)
    sides = plant.sides(planting, F.expr(f"unit div {plant.units_per_place}").isin(*TAKEN))
    planted = planted_counts(planting, plant, places)
    sent, seen, unmatched = _modelled(sides)
    homes = {row.key: row.partition for row in planting.frame.select("key", "partition").collect()}
    requested = {**asked_for(sent, seen, homes), UNMATCHED: unmatched}

    modelled = {**counts(sent, seen), **{name: requested[name] for name in plant.also}}
    assert {**modelled, "malformed": planted["malformed"]} == planted


def test_every_plant_plants_something_but_the_clean_one(planting: PlantingDataset) -> None:
    clean = planting.clean_counts()
    same = [name for name in plants if planted_counts(planting, plants[name](), 3) == clean]

    assert same == ["clean"]


def test_every_class_is_planted() -> None:
    planted = {name for plant in plants for name in plants[plant]().effect(1)}

    also = {name for plant in plants for name in plants[plant].also}
    assert {*VIOLATIONS, "unknown_arrived", "unknown_absent", "malformed"} <= planted
    assert set(anomalies) == also <= planted


def test_the_judge_finds_exactly_what_is_planted(spark: SparkSession) -> None:
    """One cell of every class, and of every rate and every shape at least one."""
    drawn = quick(RECORDS, SEED)
    of_class = {cell.plant: cell for cell in drawn}
    shapes = {cell.shape for cell in of_class.values()}
    others = {cell.shape: cell for cell in drawn if cell.shape not in shapes}
    cells = [*of_class.values(), *others.values()]
    recorded: list[CellResult] = []
    plan = Plan(seed=SEED, records=RECORDS, cells=tuple(cells), again="")

    results = conduct(plan, spark, show_message=recorded.append)

    changed = {cell.plant for cell in cells if cell.shape == RECORDED_RUN}
    assert set(of_class) == {*plants, *changed}
    assert len(changed) == QUICK_CHANGES
    assert {cell.shape for cell in cells} == {*data_shapes, RECORDED_RUN}
    assert {cell.rate for cell in cells} == {cell.rate for cell in all_cells(RECORDS)}
    assert {result.cell for result in results.cells} == set(cells)
    assert list(results.cells) == recorded
    for result in results.cells:
        assert (result.outcome, result.differences, result.error) == (Outcome.HELD, (), ""), result


def _modelled(sides: PlantedSides) -> tuple[list[Sent], list[BatchWindow], int]:
    """The rows as the model takes them, both compared values as one number: what was sent, what
    is left in the output, and how many retractions match nothing."""
    value = F.col("amount") * (1 << 33) + F.col("checksum")
    sent = sides.expected.select("key", "seq", value, "status").collect()
    actual = sides.actual
    back = F.col("retracts") if "retracts" in actual.columns else F.lit(False)
    seen = actual.select("key", "seq", value, "partition", "offset", back).collect()
    added = [BatchWindow(*row[:-1]) for row in seen if not row[-1]]
    left, unmatched = stands(added, [BatchWindow(*row[:-1]) for row in seen if row[-1]])
    return [Sent(*row) for row in sent], left, unmatched
