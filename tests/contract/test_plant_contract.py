"""What every registered plant must declare; its counts against the judge are in the self-test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest

from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.selftest.plant import Plant, plants
from tests.contract.member_rules import undescribed

SIZES = (1, 2, 8)
"""Units of one place, by which places are laid apart."""
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
    """A place changes known counts, and something unless the plant is clean."""
    for sends in SENDS:
        effect = {name: more for name, more in plant.effect(sends).items() if more}
        if unknown := sorted(set(effect) - COUNTED):
            yield f"it changes {unknown}, which is not counted"
        if bool(effect) == plant.clean:
            yield f"`clean` is {plant.clean}, and a place changes {effect}"
        if unrequested := sorted((set(effect) & set(anomalies)) - set(plant.also)):
            yield f"it changes {unrequested} and does not request it"


def broken(kind: type[Plant]) -> list[str]:
    plant = kind()
    found = [*undescribed(kind), *dict.fromkeys(wrong_account(plant))]
    if plant.units_per_place not in SIZES:
        found.append(f"one place is {plant.units_per_place} units")
    if unknown := sorted(set(plant.also) - set(anomalies)):
        found.append(f"it requests {unknown}, which is no class")
    return found


@pytest.mark.parametrize("name", sorted(plants))
def test_a_plant_keeps_the_contract(name: str) -> None:
    assert broken(plants[name]) == []


class Weed(Plant):
    name: ClassVar[str] = "weed"
    units_per_place: ClassVar[int] = 3
    clean: ClassVar[bool] = True
    also: ClassVar[tuple[str, ...]] = ("nothing",)

    def effect(self, sends: int) -> Mapping[str, int]:
        return {"beauty": -1, "gap": 1}


def test_a_plant_that_keeps_nothing_of_it_is_detected() -> None:
    assert broken(Weed) == [
        "Weed has no docstring of its own, so `list` shows nothing",
        "it changes ['beauty'], which is not counted",
        "`clean` is True, and a place changes {'beauty': -1, 'gap': 1}",
        "it changes ['gap'] and does not request it",
        "one place is 3 units",
        "it requests ['nothing'], which is no class",
    ]
