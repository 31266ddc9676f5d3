"""The contract of every data shape; the self-test tests the records that it generates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from streamquake.harness.selftest.data_shape import DataShape
from streamquake.harness.selftest.shapes import data_shapes
from tests.contract.member_rules import without_docstring

UNITS = (16, 1600, 1_000_000)


def wrong_sizes(shape: DataShape) -> Iterator[str]:
    if shape.sends < 1 or shape.weight < 1:
        yield f"it is sent {shape.sends} times, at a weight of {shape.weight}"
    for units in UNITS:
        if (keys := shape.keys(units)) < 1:
            yield f"{units} units have {keys} keys"


def wrong_columns(shape: DataShape) -> Iterator[str]:
    """A record is found by its identity and compared by other columns: a plant must be able to
    change one of the two alone."""
    if not shape.identity or not shape.compare:
        yield "the identity or the compared columns are empty"
    if shared := sorted(set(shape.identity) & set(shape.compare)):
        yield f"{shared} is both identity and compared"


def violations(kind: type[DataShape]) -> list[str]:
    shape = kind()
    return [*without_docstring(kind), *wrong_sizes(shape), *wrong_columns(shape)]


@pytest.mark.parametrize("name", sorted(data_shapes))
def test_a_shape_fulfils_the_contract(name: str) -> None:
    assert violations(data_shapes[name]) == []


class IncompleteShape(DataShape):
    name: ClassVar[str] = "shapeless"
    sends: ClassVar[int] = 0
    compare: ClassVar[tuple[str, ...]] = ("key",)

    def keys(self, units: int) -> int:
        return units - 16


def test_every_violation_of_the_contract_is_detected() -> None:
    assert violations(IncompleteShape) == [
        "IncompleteShape has no docstring of its own, so `list` shows nothing",
        "it is sent 0 times, at a weight of 1",
        "16 units have 0 keys",
        "['key'] is both identity and compared",
    ]
    IncompleteShape.compare = ()
    assert "the identity or the compared columns are empty" in violations(IncompleteShape)
