"""Which cells are judged, and how they are named."""

from __future__ import annotations

import pytest

from streamquake.harness.selftest.cells import (
    QUICK,
    all_cells,
    cells_matching,
    quick_cells,
    wide_cells,
)
from streamquake.harness.selftest.changes import RECORDED_RUN
from streamquake.harness.selftest.plant import plants
from streamquake.harness.selftest.rates import RATES
from streamquake.harness.selftest.shapes import data_shapes
from streamquake.topologies.problems import BadInput

RECORDS = 20_000


def test_wide_judges_every_class_at_every_rate_and_in_every_shape() -> None:
    cells, possible = wide_cells(RECORDS), all_cells(RECORDS)

    for plant in plants:
        for part in ("rate", "shape"):
            judged = {getattr(cell, part) for cell in cells if cell.plant == plant}
            assert judged == {getattr(cell, part) for cell in possible if cell.plant == plant}
    assert len(set(cells)) == len(cells) < len(possible) / 3


@pytest.mark.parametrize("seed", [0, 1, 2_000_000_000])
def test_quick_judges_every_class_at_rates_and_in_shapes_that_differ(seed: int) -> None:
    cells = quick_cells(RECORDS, seed)

    assert {cell.rate for cell in cells} == {cell.rate for cell in all_cells(RECORDS)}
    shapes = {cell.shape for cell in cells if cell.plant != "clean"}
    assert shapes == {*data_shapes, RECORDED_RUN}
    for plant in plants:
        of_plant = [cell for cell in cells if cell.plant == plant]
        if not plants[plant].clean:
            assert len({cell.rate for cell in of_plant}) == len(of_plant) == QUICK
        assert len({cell.shape for cell in of_plant}) == len(of_plant)


def test_quick_judges_other_cells_with_another_seed_and_every_cell_with_one() -> None:
    possible = set(all_cells(RECORDS))

    assert quick_cells(RECORDS, 3) == quick_cells(RECORDS, 3) != quick_cells(RECORDS, 4)
    assert {cell for seed in range(300) for cell in quick_cells(RECORDS, seed)} == possible


def test_rates_need_enough_records() -> None:
    def rates(records: int) -> set[str]:
        return {cell.rate for cell in all_cells(records) if cell.plant == "lost"}

    assert rates(1_000_000) == set(RATES)
    assert rates(999_992) == set(RATES) - {"one_in_1000000"}
    assert rates(8) == set(RATES) - {"one_in_1000000", "one_in_1000"}


def test_anomalies_of_order_are_planted_only_in_ordered_shapes() -> None:
    unordered = {cell.plant for cell in all_cells(RECORDS) if cell.shape == "dense_ids"}

    assert set(plants) - unordered == {
        "all_at_once",
        "gap",
        "regression",
        "reordered_far",
        "reordered_near",
        "wrong_partition",
    }


def test_clean_data_is_judged_once_in_every_shape() -> None:
    clean = [(cell.shape, cell.rate) for cell in wide_cells(RECORDS) if cell.plant == "clean"]

    assert sorted(clean) == [(shape, "none") for shape in data_shapes]


@pytest.mark.parametrize(
    ("only", "count"),
    [
        (["lost/first/few_keys"], 1),
        (["lost/first/few_keys", "lost/*/few_keys", "lost/first"], 6 + 11 - 1),
        (["clean"], 11),
        (["*"], len(all_cells(RECORDS))),
    ],
)
def test_cells_are_chosen_by_name_and_by_pattern(only: list[str], count: int) -> None:
    assert len(cells_matching(only, RECORDS)) == count


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("lsot", 'no class is called "lsot"; did you mean "lost"?'),
        ("lost/frist", 'no rate is called "frist"; did you mean "first"?'),
        ("lost/first/few", 'no shape is called "few"'),
        ("lost/first/few_keys/x", "expected CLASS, CLASS/RATE or CLASS/RATE/SHAPE"),
        ("lost/one_in_1000000", "no such combination with 20,000 records"),
        ("reordered_near/one/dense_ids", "no such combination"),
    ],
)
def test_a_pattern_without_a_cell_is_bad_input(only: str, message: str) -> None:
    with pytest.raises(BadInput) as raised:
        cells_matching(["lost/one", only], RECORDS)

    (problem,) = raised.value.problems
    assert str(problem).startswith(f"--only {only}: {message}")
