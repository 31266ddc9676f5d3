"""Cells: which plant at which rate in data of which shape, and which of all these are judged.

All combinations are too many to be judged at every turn. `wide` judges every class at every rate
and in every shape, though not at every rate in every shape: the diagonals of that square. `quick`
draws a few cells of every class from the seed.
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
"""The rate of what is made once."""

NO_SUCH = (
    "no such combination with {records:,} records: a rate needs that many places, and no "
    "order is planted where none is promised; raise --records, or leave out the shape or the rate"
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
    """Every combination that makes sense with so many records, and every change of a run."""
    planted = [cell for name in plants for cell in _cells_of(plants[name], records)]
    return [*planted, *changed_cells()]


def changed_cells() -> list[Cell]:
    """A cell for each change of the recorded run."""
    return [
        Cell(plant=name, rate=NOTHING.name if made.clean else ONE, shape=RECORDED_RUN)
        for name, made in sorted(changes.items())
    ]


def wide(records: int) -> list[Cell]:
    """Of each plant so many cells that each of its rates and each of its shapes is in one."""
    planted = [
        cell
        for change, name in enumerate(plants)
        for cell in _diagonals(list(_cells_of(plants[name], records)), change)
    ]
    return [*planted, *changed_cells()]


def quick(records: int, seed: int) -> list[Cell]:
    """Of each plant some cells, no two with the same rate or shape, of shapes that few plants
    before it have; of clean data every shape; of the changes of the recorded run some."""
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


def chosen(only: Sequence[str], records: int) -> list[Cell]:
    """The cells that `CLASS[/RATE[/SHAPE]]` name; any part may be a pattern as of file names.

    Raises BadInput for an unknown name, and where no cell is left to be judged.
    """
    if problems := [problem for pattern in only for problem in _unknown(pattern)]:
        raise BadInput(problems)
    possible = all_cells(records)
    found = {pattern: [cell for cell in possible if _fits(cell, pattern)] for pattern in only}
    if empty := [pattern for pattern, cells in found.items() if not cells]:
        raise BadInput(_problem(pattern, NO_SUCH.format(records=records)) for pattern in empty)
    return list(dict.fromkeys(cell for cells in found.values() for cell in cells))


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


def _diagonals(cells: Sequence[Cell], change: int) -> Iterator[Cell]:
    """Cells until every rate and every shape is included, diagonal by diagonal."""
    rates = list(dict.fromkeys(cell.rate for cell in cells))
    shapes = list(dict.fromkeys(cell.shape for cell in cells))

    def diagonal(cell: Cell) -> tuple[int, int]:
        rate = rates.index(cell.rate)
        return (shapes.index(cell.shape) - rate - change) % len(shapes), rate

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


def _fits(cell: Cell, pattern: str) -> bool:
    parts = pattern.split("/")
    return all(
        fnmatchcase(name, part)
        for name, part in zip((cell.plant, cell.rate, cell.shape), parts, strict=False)
    )


def _unknown(pattern: str) -> Iterator[Problem]:
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
