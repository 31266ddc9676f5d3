"""The exact form of a JSON record, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamquake.harness.reconcile.json.json_exact import (
    exact_record,
    exact_value,
    record_rewriter,
    rewrite_floating,
    rewrite_values,
    shortest_numerals,
    shortest_numerals_of_32_bits,
)


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


def test_each_text_of_a_batch_is_rewritten_and_null_stays_null() -> None:
    texts = pa.array(['{"a":1.50}', None])
    assert rewrite_values(texts).to_pylist() == ['{"a":1.5}', None]
    rewritten = record_rewriter({"a"})(texts.cast("binary"))
    assert rewritten.to_pylist() == ['{"a":1.5}', None]


def test_floating_point_values_within_a_text_take_the_form_of_other_numbers() -> None:
    texts = ['["f:0.30000000000000004","e:0.10000000149011612","s:f:1.5"]', '"f:-0.0"', '"f:NaN"']
    rewritten = ['["n:30000000000000004e-17","n:1e-1","s:f:1.5"]', '"n:0"', '"n:NaN"']
    assert rewrite_floating(pa.array([*texts, None])).to_pylist() == [*rewritten, None]


@pytest.mark.parametrize(
    ("value", "of_64_bits", "of_32_bits"),
    [
        (0.10000000149011612, "0.10000000149011612", "0.1"),
        (3.4028234663852886e38, "3.4028234663852886e+38", "3.4028235e+38"),
        (-2.0, "-2.0", "-2"),
        (float("-inf"), "-Infinity", "-Infinity"),
        (float("inf"), "Infinity", "Infinity"),
        (float("nan"), "NaN", "NaN"),
        (None, None, None),
    ],
)
def test_a_floating_point_value_has_its_shortest_numeral(
    value: float | None, of_64_bits: str | None, of_32_bits: str | None
) -> None:
    values = pa.array([value], pa.float64())
    assert shortest_numerals(values).to_pylist() == [of_64_bits]
    assert shortest_numerals_of_32_bits(values).to_pylist() == [of_32_bits]


def test_a_map_of_another_writer_keeps_a_key_that_it_has_twice() -> None:
    assert exact_value('{"m": {"a": 7.0, "a": 8.0}}') == '{"m":{"a":7,"a":8}}'
