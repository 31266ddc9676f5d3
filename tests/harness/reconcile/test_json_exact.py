"""The exact form of a JSON record, without Spark."""

from __future__ import annotations

import pytest

from streamquake.harness.reconcile.json.json_exact import exact_record, exact_value


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ("1.50", "1.5"),
        ("-12e2", "-1200"),
        ("0.00e9", "0"),
        ("25e-4", "0.0025"),
        ("1e37", "1" + "0" * 37),
        ("1e38", "1e+38"),
        ("[]", "[]"),
        ('[1e0, "1e0", null, [true]]', '[1,"1e0",null,[true]]'),
        ('{"b": 7.0, "é": {}}', '{"b":7,"é":{}}'),
    ],
)
def test_a_number_is_written_in_full_where_38_digits_suffice(value: str, exact: str) -> None:
    line = f'{{"a": {value}, "other": 1e999999}}'

    assert exact_record(line.encode(), {"a"}) == f'{{"a":{exact}}}'
    assert exact_value(value) == exact


@pytest.mark.parametrize(
    "line",
    [b"[1]", b'{"a": 1} {}', b'{"a": 1, "a": 1}', b'{"a": NaN}', b'{"a": "\\ud800"}', b"\xff"],
)
def test_a_malformed_line_has_no_exact_form(line: bytes) -> None:
    assert exact_record(line, {"a"}) is None


def test_a_number_that_floating_point_rounds_has_no_exact_form() -> None:
    assert exact_record(b'{"a": 1.00000000000000000001e300}', {"a"}) is None
