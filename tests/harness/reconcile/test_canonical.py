"""What is shown of values that were brought to one form."""

from __future__ import annotations

import pytest

from streamquake.harness.reconcile.canonical import shown


@pytest.mark.parametrize(
    ("canonical", "text"),
    [
        (None, None), ("n:12e2", "1200"), ("n:-5e-2", "-0.05"), ("n:0", "0"), ("n:NaN", "NaN"),
        ("n:1e300", "1e300"), ("s:a:b", '"a:b"'), ("b:true", "true"),
        ("d:2026-01-02", "2026-01-02"), ("j:[1]", "[1]"),
    ],
)  # fmt: skip
def test_a_canonical_text_as_people_read_it(canonical: str | None, text: str | None) -> None:
    assert shown(canonical) == text
