"""Cells: a plant, a rate and a data shape; and the selections of cells that a self-test judges.

All combinations are too many for most self-tests. `wide_cells` has every class at every rate and in
every shape, but not at every rate in every shape: the diagonals of that square. `quick_cells` draws
a few cells of every class from the seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from streamquake.harness.selftest.changes import RECORDED_RUN, changes
from streamquake.harness.selftest.dataset import units_of
from streamquake.harness.selftest.plant import Plant, plants
from streamquake.harness.selftest.rates import NOTHING, RATES
from streamquake.harness.selftest.shapes import data_shapes
from streamquake.topologies.problems import BadInput, Problem, did_you_mean

PARTS = ("class", "rate", "shape")
QUICK = 2
"""Cells of each class in a quick self-test; clean data is judged in every shape."""

QUICK_CHANGES = 4
"""Changes of the recorded run in a quick self-test."""
ONE = "one"
"""The rate of a change of the recorded run."""

NO_SUCH = (
    "no such combination with {records:,} records: a rate needs enough places, and an unordered "
    "shape has no anomalies of order; raise --records, or leave out the shape or the rate"
)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One plant at one rate in one shape, all by name."""

    plant: str
    rate: str
    shape: str

    def __str__(self) -> str:
        return f"{self.plant}/{self.rate}/{self.shape}"


def all_cells(records: int) -> list[Cell]:
    """Every possible combination for `records` records, and every change of the recorded run."""
    planted = [cell for name in plants for cell in _cells_of(plants[name], records)]
    return [*planted, *changed_cells()]


def changed_cells() -> list[Cell]:
    """A cell for each change of the recorded run."""
    return [
        Cell(plant=name, rate=NOTHING.name if change.clean else ONE, shape=RECORDED_RUN)
        for name, change in sorted(changes.items())
    ]


def wide_cells(records: int) -> list[Cell]:
    """For each plant, cells that include each of its rates and each of its shapes."""
    planted = [
        cell
        for number, name in enumerate(plants)
        for cell in _diagonals(list(_cells_of(plants[name], records)), number)
    ]
    return [*planted, *changed_cells()]


def quick_cells(records: int, seed: int) -> list[Cell]:
    """A few cells of each plant, without a common rate or shape, preferably in shapes of few other
    cells; clean data in every shape; and a few changes of the recorded run."""
    cells: list[Cell] = []
    shapes: Counter[str] = Counter()
    for name in plants:
        possible = list(_cells_of(plants[name], records))
        random.Random(f"{seed}:{name}").shuffle(possible)
        possible.sort(key=lambda cell: shapes[cell.shape])
        drawn = possible if plants[name].clean else _different(possible)
        shapes.update(cell.shape for cell in drawn)
        cells += drawn
    changed = random.Random(f"{seed}:{RECORDED_RUN}").sample(changed_cells(), QUICK_CHANGES)
    return [*cells, *changed]


def cells_matching(only: Sequence[str], records: int) -> list[Cell]:
    """The cells that match patterns `CLASS[/RATE[/SHAPE]]`; any part may have wildcards.

    Raises BadInput for an unknown name, and for a pattern that matches no cell.
    """
    if problems := [problem for pattern in only for problem in _unknown_names(pattern)]:
        raise BadInput(problems)
    possible = all_cells(records)
    matching = {pattern: [cell for cell in possible if _matches(cell, pattern)] for pattern in only}
    if empty := [pattern for pattern, cells in matching.items() if not cells]:
        raise BadInput(_problem(pattern, NO_SUCH.format(records=records)) for pattern in empty)
    return list(dict.fromkeys(cell for cells in matching.values() for cell in cells))


def _cells_of(plant: type[Plant], records: int) -> Iterator[Cell]:
    for shape in data_shapes:
        kind = data_shapes[shape]()
        if plant.needs_order and not kind.ordered:
            continue
        places = units_of(kind, records) // plant.units_per_place
        rates = (
            [NOTHING.name]
            if plant.clean
            else [name for name, rate in RATES.items() if rate.count(places)]
        )
        for rate in rates:
            yield Cell(plant=plant.name, rate=rate, shape=shape)


def _diagonals(cells: Sequence[Cell], first: int) -> Iterator[Cell]:
    """Cells by diagonals, from diagonal `first` on, until every rate and every shape is
    included."""
    rates = list(dict.fromkeys(cell.rate for cell in cells))
    shapes = list(dict.fromkeys(cell.shape for cell in cells))

    def diagonal(cell: Cell) -> tuple[int, int]:
        rate = rates.index(cell.rate)
        return (shapes.index(cell.shape) - rate - first) % len(shapes), rate

    left = {*rates, *shapes}
    for cell in sorted(cells, key=diagonal):
        if left & {cell.rate, cell.shape}:
            left -= {cell.rate, cell.shape}
            yield cell


def _different(cells: Iterable[Cell]) -> list[Cell]:
    """The first `QUICK` cells that have neither rate nor shape in common."""
    taken: list[Cell] = []
    for cell in cells:
        alike = any(cell.rate == other.rate or cell.shape == other.shape for other in taken)
        if not alike and len(taken) < QUICK:
            taken.append(cell)
    return taken


def _matches(cell: Cell, pattern: str) -> bool:
    parts = pattern.split("/")
    return all(
        fnmatchcase(name, part)
        for name, part in zip((cell.plant, cell.rate, cell.shape), parts, strict=False)
    )


def _unknown_names(pattern: str) -> Iterator[Problem]:
    known: Sequence[Iterable[str]] = (
        [*plants, *changes],
        [NOTHING.name, *RATES],
        [*data_shapes, RECORDED_RUN],
    )
    parts = pattern.split("/")
    if len(parts) > len(PARTS):
        yield _problem(pattern, "expected CLASS, CLASS/RATE or CLASS/RATE/SHAPE")
        return
    for kind, part, names in zip(PARTS, parts, known, strict=False):
        if not any(fnmatchcase(name, part) for name in names):
            yield _problem(pattern, f'no {kind} is called "{part}"{did_you_mean(part, names)}')


def _problem(pattern: str, message: str) -> Problem:
    return Problem(file=f"--only {pattern}", message=message)
