"""The self-test: judges every cell.

The judge is the real reconciliation. It is a parameter, so that a test can replace it by a broken
one: a self-test that cannot fail proves nothing.
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
from streamquake.harness.selftest.dataset import PlantingDataset, cached_dataset
from streamquake.harness.selftest.plant import Plant, plants
from streamquake.harness.selftest.rates import NOTHING, RATES, PlantingPlaces, PlantingRate
from streamquake.harness.selftest.recorded import recorded_cell
from streamquake.harness.selftest.result import CellResult, SelfTest
from streamquake.harness.selftest.shapes import data_shapes
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.errors import kind_of

AT_ONCE = 2
"""Cells judged at the same time: on small data most of the work is planning, which has one
thread."""
Judge = Callable[[DataFrame, DataFrame, Shape], ReconciliationResult]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cells to judge. The same plan generates the same data and plants the same anomalies."""

    seed: int
    records: int
    cells: tuple[Cell, ...]
    again: str
    """The command that repeats the self-test."""

    def command_for(self, cell: Cell) -> str:
        """The command that judges one cell on the same data with the same planted anomalies."""
        argv = ["streamquake", "selftest", "--seed", str(self.seed)]
        return shlex.join([*argv, "--records", str(self.records), "--only", str(cell)])


def run_selftest(
    plan: Plan,
    spark: SparkSession,
    *,
    show_result: Callable[[CellResult], None],
    judge: Judge | None = None,
) -> SelfTest:
    """Judge every cell; the data of each shape is generated once. `show_result` gets each
    result."""
    began = time.perf_counter()
    results = []
    for result in _results(plan, spark, judge or _reconciliation_judge(plan)):
        show_result(result)
        results.append(result)
    return SelfTest(
        seed=plan.seed,
        records=plan.records,
        cells=tuple(results),
        seconds=time.perf_counter() - began,
        again=plan.again,
    )


def _reconciliation_judge(plan: Plan) -> Judge:
    def judge(expected: DataFrame, actual: DataFrame, shape: Shape) -> ReconciliationResult:
        return reconcile(expected, actual, shape, record_estimate=plan.records)

    return judge


def _results(plan: Plan, spark: SparkSession, judge: Judge) -> Iterator[CellResult]:
    for cell in plan.cells:
        if cell.shape == RECORDED_RUN:
            yield recorded_cell(cell, spark, again=plan.command_for(cell))
    planted = [cell for cell in plan.cells if cell.shape != RECORDED_RUN]
    by_shape = sorted(planted, key=lambda cell: cell.shape)
    for name, cells in groupby(by_shape, key=lambda cell: cell.shape):
        shape = data_shapes[name]()
        with (
            cached_dataset(spark, shape, seed=plan.seed, records=plan.records) as dataset,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            yield from pool.map(partial(_result, dataset=dataset, judge=judge, plan=plan), cells)


def _result(cell: Cell, dataset: PlantingDataset, judge: Judge, plan: Plan) -> CellResult:
    """Judge one cell; if the judge raises, the cell is undecided with the error."""
    began = time.perf_counter()
    plant, rate = plants[cell.plant](), RATES.get(cell.rate, NOTHING)
    population = dataset.units // plant.units_per_place
    places = rate.count(population)
    planted = planted_counts(dataset, plant, places)
    again = plan.command_for(cell)
    selected = _selected(cell, dataset, plant, rate, plan.seed)
    try:
        sides = plant.sides(dataset, selected)
        shape = dataset.reconcile_shape(plant.also)
        reported = judge(sides.expected, sides.actual, shape)
        found = differences(planted, reported, dataset, sides, selected)
    except Exception as error:  # noqa: BLE001 - a judge that fails leaves its cell undecided
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
        outcome=Outcome.VIOLATED if found else Outcome.HELD,
        places=places,
        planted=planted,
        reported=reported.counts,
        differences=found,
        again=again,
        seconds=time.perf_counter() - began,
    )


def _selected(
    cell: Cell, dataset: PlantingDataset, plant: Plant, rate: PlantingRate, seed: int
) -> Column:
    """Whether a row is in a planted place, by its unit. Each cell draws its own places from the
    seed."""
    places = PlantingPlaces(
        population=dataset.units // plant.units_per_place,
        seed=f"{seed}:{cell}",
        end=dataset.ends[0] // plant.units_per_place,
    )
    return rate.is_planted(F.expr(f"unit div {plant.units_per_place}"), places)
