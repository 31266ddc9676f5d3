"""The self-test from its first cell to its last.

Every cell is judged by the real reconciliation, given as `judge` so that a test can hand over a
broken one: a self-test that cannot fail proves nothing.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reconcile import reconcile
from streamquake.harness.reconcile.result import ReconciliationResult
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.selftest.cell_counts import differences, planted_counts
from streamquake.harness.selftest.cells import Cell
from streamquake.harness.selftest.changes import RECORDED_RUN
from streamquake.harness.selftest.dataset import PlantingDataset, stored
from streamquake.harness.selftest.plant import Plant, plants
from streamquake.harness.selftest.rates import NOTHING, RATES, PlantingPlaces, PlantingRate
from streamquake.harness.selftest.recorded import recorded_cell
from streamquake.harness.selftest.result import CellResult, SelfTest
from streamquake.harness.selftest.shapes import data_shapes
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.errors import kind_of

AT_ONCE = 2
"""Cells judged at a time: most of the work on small data is planning, one thread for each."""
Judge = Callable[[DataFrame, DataFrame, Shape], ReconciliationResult]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be judged. The same plan makes the same data and plants the same records."""

    seed: int
    records: int
    cells: tuple[Cell, ...]
    again: str
    """The command that judges all of it once more."""

    def again_with(self, cell: Cell) -> str:
        """The command that judges one cell: the same data, the same records planted."""
        argv = ["streamquake", "selftest", "--seed", str(self.seed)]
        return shlex.join([*argv, "--records", str(self.records), "--only", str(cell)])


def conduct(
    plan: Plan,
    spark: SparkSession,
    *,
    show_message: Callable[[CellResult], None],
    judge: Judge | None = None,
) -> SelfTest:
    """Judge every cell; each shape's data is made once. `show_message` gets each result."""
    began = time.perf_counter()
    results = []
    for result in _results(plan, spark, judge or _reconciling(plan)):
        show_message(result)
        results.append(result)
    return SelfTest(
        seed=plan.seed,
        records=plan.records,
        cells=tuple(results),
        seconds=time.perf_counter() - began,
        again=plan.again,
    )


def _reconciling(plan: Plan) -> Judge:
    def judge(expected: DataFrame, actual: DataFrame, shape: Shape) -> ReconciliationResult:
        return reconcile(expected, actual, shape, about=plan.records)

    return judge


def _results(plan: Plan, spark: SparkSession, judge: Judge) -> Iterator[CellResult]:
    for cell in plan.cells:
        if cell.shape == RECORDED_RUN:
            yield recorded_cell(cell, spark, again=plan.again_with(cell))
    planted = [cell for cell in plan.cells if cell.shape != RECORDED_RUN]
    in_shapes = sorted(planted, key=lambda cell: cell.shape)
    for name, cells in groupby(in_shapes, key=lambda cell: cell.shape):
        shape = data_shapes[name]()
        with (
            stored(spark, shape, seed=plan.seed, records=plan.records) as dataset,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            yield from pool.map(partial(_result, planting=dataset, judge=judge, plan=plan), cells)


def _result(cell: Cell, planting: PlantingDataset, judge: Judge, plan: Plan) -> CellResult:
    """A judge that breaks leaves its cell undecided, with the error."""
    began = time.perf_counter()
    plant, rate = plants[cell.plant](), RATES.get(cell.rate, NOTHING)
    population = planting.units // plant.units_per_place
    places = rate.count(population)
    planted = planted_counts(planting, plant, places)
    again = plan.again_with(cell)
    selected = _selected(cell, planting, plant, rate, plan.seed)
    try:
        sides = plant.sides(planting, selected)
        how = planting.judged_by(plant.also)
        reported = judge(sides.expected, sides.actual, how)
        wrong = differences(planted, reported, planting, sides, selected)
    except Exception as error:  # noqa: BLE001 - the guard: no answer is undecided, not found
        return CellResult(
            cell=cell,
            outcome=Outcome.UNDECIDED,
            places=places,
            planted=planted,
            again=again,
            error=f"{type(error).__name__}: {error}",
            cause=kind_of(error),
            seconds=time.perf_counter() - began,
        )
    return CellResult(
        cell=cell,
        outcome=Outcome.VIOLATED if wrong else Outcome.HELD,
        places=places,
        planted=planted,
        reported=reported.counts,
        differences=wrong,
        again=again,
        seconds=time.perf_counter() - began,
    )


def _selected(
    cell: Cell, planting: PlantingDataset, plant: Plant, rate: PlantingRate, seed: int
) -> Column:
    """Whether a row is planted, by its unit. Each cell draws its own places from the seed."""
    drawn = f"{seed}:{cell}"
    places = PlantingPlaces(
        population=planting.units // plant.units_per_place,
        seed=drawn,
        end=planting.ends[0] // plant.units_per_place,
    )
    return rate.chosen(F.expr(f"unit div {plant.units_per_place}"), places)
