"""Canonical texts are displayed as the values that they represent."""

from __future__ import annotations

import pytest

from streamquake.harness.reconcile.values.canonical import display_value


@pytest.mark.parametrize(
    ("canonical", "value"),
    [
        (None, None),
        ("n:12e2", 1200),
        ("n:-5e-2", -0.05),
        ("n:0", 0),
        ("n:NaN", "NaN"),
        ("n:9007199254740993e0", 9007199254740993),
        ("n:1e300", "1e300"),
        ("n:1e59", 10**59),
        ("n:1e60", "1e60"),
        ("n:1e-60", "1e-60"),
        ("n:12345678901234567891e-1", "1234567890123456789.1"),
        ("s:a:b", "a:b"),
        ("s:", ""),
        ("b:true", True),
        ("b:false", False),
        ("d:2026-01-02", "2026-01-02"),
        ("j:[1]", "[1]"),
        (
            'o:{"s:a:b":["n:12e2",null,"t:1500000","j:[1.5]","n:NaN","x:00FF"]}',
            '{"a:b": [1200, null, "1970-01-01T00:00:01.500000+00:00", [1.5], "NaN", "00FF"]}',
        ),
        ('o:{"s:a":"n:1e0","r1:s:a":"n:2e0"}', '{"a": 1, "a (again, at 1)": 2}'),
        ("t:1500000", "1970-01-01T00:00:01.500000+00:00"),
        ("t:-9999999999999999999", "-9999999999999999999 µs since 1970"),
    ],
)
def test_a_canonical_text_is_displayed_as_its_value(canonical: str | None, value: object) -> None:
    displayed = display_value(canonical)

    assert (displayed, type(displayed)) == (value, type(value))
