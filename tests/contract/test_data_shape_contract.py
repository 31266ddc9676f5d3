"""What every data shape must declare; the records it makes are tested in the self-test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from streamquake.harness.selftest.data_shape import DataShape
from streamquake.harness.selftest.shapes import data_shapes
from tests.contract.member_rules import undescribed

UNITS = (16, 1600, 1_000_000)


def wrong_sizes(shape: DataShape) -> Iterator[str]:
    if shape.sends < 1 or shape.weight < 1:
        yield f"it is sent {shape.sends} times, at a weight of {shape.weight}"
    for units in UNITS:
        if (keys := shape.keys(units)) < 1:
            yield f"{units} units have {keys} keys"


def wrong_columns(shape: DataShape) -> Iterator[str]:
    """A record is found by its identity and judged by the rest: a plant must be able to break each
    of them alone."""
    if not shape.identity or not shape.compare:
        yield "nothing names a record, or nothing is compared"
    if both := sorted(set(shape.identity) & set(shape.compare)):
        yield f"{both} names a record and is compared"


def broken(kind: type[DataShape]) -> list[str]:
    shape = kind()
    return [*undescribed(kind), *wrong_sizes(shape), *wrong_columns(shape)]


@pytest.mark.parametrize("name", sorted(data_shapes))
def test_a_shape_keeps_the_contract(name: str) -> None:
    assert broken(data_shapes[name]) == []


class Shapeless(DataShape):
    name: ClassVar[str] = "shapeless"
    sends: ClassVar[int] = 0
    compare: ClassVar[tuple[str, ...]] = ("key",)

    def keys(self, units: int) -> int:
        return units - 16


def test_a_shape_that_keeps_nothing_of_it_is_detected() -> None:
    assert broken(Shapeless) == [
        "Shapeless has no docstring of its own, so `list` shows nothing",
        "it is sent 0 times, at a weight of 1",
        "16 units have 0 keys",
        "['key'] names a record and is compared",
    ]
    Shapeless.compare = ()
    assert "nothing names a record, or nothing is compared" in broken(Shapeless)
