"""Drawn parameters are valid, and cover the range around the example."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, model_validator

from streamquake.faults.fault import Fault, faults
from streamquake.faults.schedule.drawn_parameters import draw_parameters


class Sample(Fault):
    """A fault with every kind of parameter."""

    name: ClassVar[str] = "sample"
    example: ClassVar[Mapping[str, Any]] = {"delay_ms": 80, "share": 0.5, "none": 0, "text": "a"}

    delay_ms: Annotated[int, Field(ge=1, le=100)] = 10
    share: Annotated[float, Field(gt=0, le=1)] = 0.1
    how: Literal["drop", "reset"] = "drop"
    wide: bool = False
    none: int = 0
    text: str = ""
    unused: int = 7


class Picky(Fault):
    """A fault of which nearly every drawn value is invalid."""

    name: ClassVar[str] = "picky"
    example: ClassVar[Mapping[str, Any]] = {"count": 1000}

    count: int

    @model_validator(mode="after")
    def _only_the_example(self) -> Picky:
        if self.count != 1000:
            raise ValueError("expected 1000")
        return self


@given(st.integers(0, 10**6), st.sampled_from(sorted(faults)))
def test_parameters_of_every_fault_are_valid(seed: int, name: str) -> None:
    drawn = draw_parameters(faults[name], random.Random(seed))
    faults[name](**drawn)
    assert drawn == draw_parameters(faults[name], random.Random(seed))


def test_numbers_are_drawn_around_the_example_within_their_bounds() -> None:
    drawn = [draw_parameters(Sample, random.Random(seed)) for seed in range(300)]
    assert {value["delay_ms"] for value in drawn} <= set(range(10, 101))
    assert min(value["delay_ms"] for value in drawn) < 15
    assert max(value["delay_ms"] for value in drawn) > 90
    assert all(0.0625 <= value["share"] <= 1 for value in drawn)
    assert min(value["share"] for value in drawn) < 0.1
    assert max(value["share"] for value in drawn) > 0.9


def test_choices_are_drawn_and_what_has_no_range_stays() -> None:
    drawn = [draw_parameters(Sample, random.Random(seed)) for seed in range(40)]
    assert {(value["how"], value["wide"]) for value in drawn} == {
        ("drop", True),
        ("drop", False),
        ("reset", True),
        ("reset", False),
    }
    assert {(value["none"], value["text"]) for value in drawn} == {(0, "a")}
    assert all("unused" not in value for value in drawn)


def test_a_fault_that_rejects_what_is_drawn_has_its_example() -> None:
    assert draw_parameters(Picky, random.Random(1)) == {"count": 1000}


@pytest.mark.parametrize("name", ["slow_link", "kill", "crash_loop"])
def test_shipped_faults_have_more_than_one_drawn_value(name: str) -> None:
    drawn = {str(draw_parameters(faults[name], random.Random(seed))) for seed in range(30)}
    assert len(drawn) > 5
