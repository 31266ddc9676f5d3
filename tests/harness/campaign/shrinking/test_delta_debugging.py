"""`ddmin` finds what is planted, and nothing of its result can be left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamquake.harness.campaign.shrinking.delta_debugging import ddmin

Part = tuple[int, ...]


class Failing:
    """A planted condition over parts, which counts how often it was asked."""

    def __init__(self, condition: Callable[[Part], bool]) -> None:
        self._condition = condition
        self.asked: list[Part] = []

    def __call__(self, part: Part) -> bool:
        self.asked.append(part)
        return self._condition(part)


@given(st.data(), st.integers(1, 40))
def test_exactly_the_planted_items_are_left(data: st.DataObject, size: int) -> None:
    planted = data.draw(st.sets(st.integers(0, size - 1)))
    fails = Failing(lambda part: planted <= {*part})
    assert ddmin(range(size), fails) == tuple(sorted(planted))


@given(st.sets(st.frozensets(st.integers(0, 9), min_size=1), min_size=1, max_size=4))
def test_no_item_of_the_result_can_be_left_out(causes: set[frozenset[int]]) -> None:
    def fails(part: Part) -> bool:
        return any(cause <= {*part} for cause in causes)

    found = ddmin(range(10), fails)
    assert fails(found)
    assert not any(fails(found[:n] + found[n + 1 :]) for n in range(len(found)))


@given(st.integers(1, 12), st.randoms(use_true_random=False))
def test_any_condition_ends_with_a_failing_part(size: int, random: object) -> None:
    """Also a condition that is not monotone, as a flaky one is."""
    answers: dict[Part, bool] = {tuple(range(size)): True}

    def fails(part: Part) -> bool:
        return answers.setdefault(part, random.random() < 0.4)  # type: ignore[attr-defined]

    found = ddmin(range(size), fails)
    assert answers[found]
    assert [*found] == sorted({*found})


def test_nothing_is_left_of_what_fails_without_any_item() -> None:
    fails = Failing(lambda part: True)
    assert ddmin(range(8), fails) == ()
    assert fails.asked == [()]


@pytest.mark.parametrize(("size", "most"), [(8, 8), (64, 15)])
def test_one_needed_item_takes_a_logarithm_of_candidates(size: int, most: int) -> None:
    fails = Failing(lambda part: size - 1 in part)
    assert ddmin(range(size), fails) == (size - 1,)
    assert len(fails.asked) <= most


def test_two_needed_items_of_eight_take_few_candidates() -> None:
    fails = Failing(lambda part: {2, 6} <= {*part})
    assert ddmin(range(8), fails) == (2, 6)
    assert len({*fails.asked}) <= 20
