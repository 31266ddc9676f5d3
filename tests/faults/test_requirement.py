"""What a recorded observation must be: each requirement at its limit, and with a value of another
type."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.faults.requirement import (
    Requirement,
    all_of,
    as_many_as,
    at_least,
    at_most,
    each,
    has,
    less_than,
    more_than,
    one_of,
    other_than,
    some,
    text_with,
    unmet,
    without,
)


@pytest.mark.parametrize(
    ("requirement", "met", "not_met"),
    [
        (one_of("exited", 7), ["exited", 7], ["running", None, 7.5]),
        (one_of(True), [True], [1, False, "True"]),
        (one_of(1), [1], [True]),
        (one_of(None), [None], [0, ""]),
        (other_than("paused", "dead"), ["running", None], ["paused", "dead"]),
        (more_than(2), [3, 2.1], [2, 1, None, "3", True]),
        (more_than(0), [1], [True]),
        (less_than(2), [1.9, -1], [2, None, False]),
        (at_least(2), [2, 2.5], [1.9, "2"]),
        (at_most(2), [2, 1], [2.1, "2"]),
        (text_with("No space"), ["write: No space left"], ["written", None, ["No space"]]),
        (text_with("a", "b$", words="a to b"), ["cab"], ["ac", "b", "abc", None, ["ab"]]),
        (some(), [[1], {"a": 1}, "x"], [[], {}, "", None, 1]),
        (as_many_as({"a": 1, "b": 2}), [{"c": 0, "d": 0}, [1, 2]], [{"a": 1}, [1, 2, 3], "ab", 2]),
        (all_of(more_than(0), less_than(3)), [1, 2], [0, 3, None]),
        (
            each(more_than(0)),
            [{"a": 1, "b": 2}, [1]],
            [{}, [], {"a": 1, "b": 0}, [1, 0], None, "1"],
        ),
        (
            has(parallelism=one_of(4), running=one_of(4)),
            [{"parallelism": 4, "running": 4, "wanted": 9}],
            [{"parallelism": 4, "running": 3}, {"parallelism": 4}, 4],
        ),
        (without(1, 2), [[], [3]], [[2, 3], [1], None, "12"]),
    ],
)
def test_a_requirement_is_met_by_its_values_alone(
    requirement: Requirement, met: list[Any], not_met: list[Any]
) -> None:
    assert [found for found in met if not requirement.is_met(found)] == []
    assert [found for found in not_met if requirement.is_met(found)] == []


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (one_of("running", "gone"), "running or gone"),
        (one_of(None, None), "None"),
        (other_than("paused", 1), "another than paused or 1"),
        (more_than(0.5), "more than 0.5"),
        (less_than(3), "less than 3"),
        (at_least(3), "at least 3"),
        (at_most(3), "at most 3"),
        (text_with("SafeMode"), "a text with SafeMode"),
        (text_with("S", "M"), "a text with S and M"),
        (text_with("S", words="a name"), "a name"),
        (some(), "at least one"),
        (as_many_as([1, 2]), "2 of them"),
        (all_of(more_than(0), less_than(3)), "more than 0, less than 3"),
        (each(one_of(0)), "0 for each"),
        (has(a=one_of(1), b=more_than(2)), "a 1, b more than 2"),
        (without(1, 2), "none of 1, 2"),
    ],
)
def test_a_requirement_says_what_is_expected(requirement: Requirement, expected: str) -> None:
    assert requirement.expected == expected


@pytest.mark.parametrize(
    ("found", "shown"), [("137", "str 137"), (137.5, "137.5"), (143, "143"), (None, "None")]
)
def test_a_value_of_another_type_that_is_written_alike_has_its_type(found: Any, shown: str) -> None:
    messages = list(unmet({"exit_code": found}, {"exit_code": one_of(137)}))
    assert messages == [f"exit_code: expected 137, got {shown}"]


def test_each_observation_that_is_not_as_required_is_named() -> None:
    required = {"status": one_of("exited"), "hits": more_than(0), "absent": some()}
    assert list(unmet({"status": "running", "hits": 0, "pid": 1}, required)) == [
        "status: expected exited, got running",
        "hits: expected more than 0, got 0",
    ]
    assert list(unmet({"status": "exited", "hits": 1}, required)) == []
