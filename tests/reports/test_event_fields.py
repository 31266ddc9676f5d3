"""The types of the fields of an event: a wrong one is named."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.reports.record.event_fields import field_problem

VERTEX = {"id": "v", "name": "map", "parallelism": 2}
EDGE = {"from": "v", "to": "w", "ship": "HASH"}

REPORT = {"vertex": "v", "subtask": 0, "duration_ms": 5, "alignment_ms": -1, "unaligned": False}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"acknowledged": 5, "failed": 0, "unknown": None},
        {"lag": 0},
        {"lag": None},
        {"met": True, "before_met": None, "own": None},
        {"asked_s": 1.5, "before_asked_s": None, "longest_gap_s": 0},
        {"subtasks": None},
        {"subtasks": 8},
        {"subtasks": [REPORT, {**REPORT, "later": None}, {}]},
        {"vertices": [], "edges": [], "regions": []},
        {"vertices": [VERTEX, {}], "edges": [EDGE], "regions": [[["v", 0], ["v", 1]], []]},
    ],
)
def test_fields_of_their_types_have_no_problem(value: dict[str, Any]) -> None:
    assert field_problem(value) == ""


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("lag", ["5", 1.5, True, []], "a whole number"),
        ("failed", ["500", 0.5, {}], "a whole number"),
        ("unknown", ["x", False], "a whole number"),
        ("stage", [-1, None, "0"], "a whole number of at least 0"),
        ("met", [1, "yes", {}, None], "true or false"),
        ("before_met", [1, "yes"], "true or false"),
        ("longest_gap_s", [None, "1", True, float("nan"), 2.0**63], "a number"),
        ("asked_s", [None], "a number"),
        ("executor", [1, []], "a text"),
        (
            "subtasks",
            [
                "8",
                True,
                {},
                [None],
                ["v"],
                [REPORT, {**REPORT, "vertex": None}],
                [{**REPORT, "subtask": -1}],
                [{**REPORT, "duration_ms": None}],
                [{**REPORT, "alignment_ms": "5"}],
                [{**REPORT, "unaligned": 1}],
            ],
            "a whole number, or a list of objects with the fields of a subtask's checkpoint",
        ),
        (
            "vertices",
            [
                None,
                {},
                ["v"],
                [{**VERTEX, "id": 1}],
                [{**VERTEX, "name": None}],
                [{**VERTEX, "parallelism": "2"}],
                [{**VERTEX, "parallelism": -1}],
            ],
            "a list of objects with the texts `id` and `name` and the whole number `parallelism`",
        ),
        (
            "edges",
            [None, {}, [1], [{**EDGE, "from": None}], [{**EDGE, "to": 7}], [{"from": "v"}]],
            "a list of objects with the texts `from` and `to`",
        ),
        (
            "regions",
            [None, {}, [1], [["v", 0]], [[["v"]]], [[["v", "0"]]], [[[1, 0]]], [[["v", -1]]]],
            "a list of lists of pairs, each the id of a vertex and a whole number of at least 0",
        ),
    ],
)
def test_a_field_of_another_type_is_named(name: str, values: list[Any], expected: str) -> None:
    for value in values:
        assert field_problem({name: value}) == f"expected `{name}` to be {expected}", value
