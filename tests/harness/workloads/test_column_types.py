"""The types of the columns of a data set represent its values exactly."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from streamquake.harness.workloads.data_sets.column_types import (
    arrow_type,
    common_type,
    fits,
    type_of,
)

BIG = 2**63


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "BOOLEAN"),
        (0, "BIGINT"),
        (BIG - 1, "BIGINT"),
        (-BIG, "BIGINT"),
        (BIG, "JSON"),
        (Decimal("1.50"), "DOUBLE"),
        (Decimal("1e400"), "JSON"),
        (Decimal("0.1234567890123456789"), "JSON"),
        ("1", "STRING"),
        ([1], "JSON"),
        ({"a": 1}, "JSON"),
    ],
)
def test_the_narrowest_type_represents_the_value(value: Any, kind: str) -> None:
    assert type_of(value) == kind
    assert fits(kind, value)


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("BIGINT", "BIGINT", "BIGINT"),
        ("BIGINT", "DOUBLE", "DOUBLE"),
        ("DOUBLE", "BIGINT", "DOUBLE"),
        ("BOOLEAN", "BIGINT", "JSON"),
        ("DOUBLE", "STRING", "JSON"),
        ("STRING", "JSON", "JSON"),
    ],
)
def test_the_type_of_different_values(one: str, other: str, common: str) -> None:
    assert common_type(one, other) == common


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        ("INT", [2**31 - 1, -(2**31)], [2**31, -(2**31) - 1, Decimal("1.5"), True, "1"]),
        ("BIGINT", [BIG - 1], [BIG, Decimal("1.0")]),
        ("BOOLEAN", [True, False], [0, "true"]),
        ("DOUBLE", [1, Decimal("0.1"), 2**53], [2**53 + 1, 10**400, Decimal("1e999"), True]),
        (
            "DECIMAL(5,2)",
            [Decimal("999.99"), Decimal("-0.010"), 999, Decimal("1e2"), Decimal("0.000"), 0],
            [Decimal("0.001"), 1000, Decimal("1e3"), Decimal("999.999"), "1", False],
        ),
        ("DECIMAL(38, 0)", [10**38 - 1], [10**38]),
        ("STRING", ["a", ""], [1, True, [], {}]),
        ("JSON", [1, Decimal("1.0"), "a", [], {}, True], []),
    ],
)
def test_only_values_that_are_exactly_representable_fit(
    kind: str, inside: list[Any], outside: list[Any]
) -> None:
    assert [value for value in inside if not fits(kind, value)] == []
    assert [value for value in outside if fits(kind, value)] == []
    assert fits(kind, None)


@pytest.mark.parametrize(
    "name", ["TIMESTAMP", "int", "DECIMAL(39,0)", "DECIMAL(2,3)", "DECIMAL(0,0)"]
)
def test_other_types_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=r"expected BOOLEAN, INT, .* or DECIMAL"):
        arrow_type(name)
