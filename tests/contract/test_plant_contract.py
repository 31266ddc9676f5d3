"""The contract of every registered plant; the self-test compares its counts with the judge's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest

from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.selftest.plant import Plant, plants
from tests.contract.member_rules import without_docstring

SIZES = (1, 2, 8)
"""Possible numbers of units in one place, the distance between places."""
SENDS = (1, 3)
COUNTED = {
    *VIOLATIONS,
    *anomalies,
    "expected",
    "actual",
    "unknown_arrived",
    "unknown_absent",
    "malformed",
}


def wrong_account(plant: Plant) -> Iterator[str]:
    """A place changes only known counts, and at least one unless the plant is clean."""
    for sends in SENDS:
        effect = {name: more for name, more in plant.effect(sends).items() if more}
        if unknown := sorted(set(effect) - COUNTED):
            yield f"it changes {unknown}, which is not counted"
        if bool(effect) == plant.clean:
            yield f"`clean` is {plant.clean}, and a place changes {effect}"
        if unrequested := sorted((set(effect) & set(anomalies)) - set(plant.also)):
            yield f"it changes {unrequested} and does not request it"


def violations(kind: type[Plant]) -> list[str]:
    plant = kind()
    found = [*without_docstring(kind), *dict.fromkeys(wrong_account(plant))]
    if plant.units_per_place not in SIZES:
        found.append(f"one place is {plant.units_per_place} units")
    if unknown := sorted(set(plant.also) - set(anomalies)):
        found.append(f"it requests {unknown}, which is no class")
    return found


@pytest.mark.parametrize("name", sorted(plants))
def test_a_plant_fulfils_the_contract(name: str) -> None:
    assert violations(plants[name]) == []


class IncompletePlant(Plant):
    name: ClassVar[str] = "weed"
    units_per_place: ClassVar[int] = 3
    clean: ClassVar[bool] = True
    also: ClassVar[tuple[str, ...]] = ("nothing",)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"beauty": -1, "gap": 1}


def test_every_violation_of_the_contract_is_detected() -> None:
    assert violations(IncompletePlant) == [
        "IncompletePlant has no docstring of its own, so `list` shows nothing",
        "it changes ['beauty'], which is not counted",
        "`clean` is True, and a place changes {'beauty': -1, 'gap': 1}",
        "it changes ['gap'] and does not request it",
        "one place is 3 units",
        "it requests ['nothing'], which is no class",
    ]
