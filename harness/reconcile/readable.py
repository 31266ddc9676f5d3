"""Findings as people read them: with the expressions of the request, and with plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Row

from streamquake.harness.reconcile.column_layout import MISSING, Layout
from streamquake.harness.reconcile.examples import clip
from streamquake.harness.reconcile.shape import shown_name
from streamquake.harness.reconcile.values.canonical import display_value
from streamquake.reports.record.outcome import Finding

ABSENT = "(no such field)"
RANKS = ("before",)
"""Values in the form that sorts (`column_layout.py`)."""


def readable_finding(finding: Finding, layout: Layout) -> Finding:
    """A finding of the comparison with the user's names of columns, and with plain values."""
    return replace(finding, detail=_values(finding.detail, layout))


def _values(detail: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    readable_values: dict[str, Any] = {}
    for name, value in detail.items():
        if name in ("sent", "seen"):
            rows = [_values(row, layout) for row in value]
            # Where no value is compared, only the number of copies can be shown.
            readable_values[name] = rows if any(rows) else len(rows)
        elif name.endswith(MISSING):
            continue
        elif detail.get(name + MISSING):
            readable_values[shown_name(layout.titles[name])] = ABSENT
        else:
            readable_values[_title(name, layout)] = clip(_value(name, value, layout))
    return readable_values


def _title(name: str, layout: Layout) -> str:
    return shown_name(layout.titles[name]) if name in layout.titles else name


def _value(name: str, value: Any, layout: Layout) -> Any:
    if name in layout.canonical_columns:
        return display_value(value)
    return _value_of_rank(value) if isinstance(value, Row) and name in RANKS else value


def _long_number(sign: int, size: int, digits: str) -> str:
    """A number of more than 38 digits, from the parts that sort."""
    if sign < 0:
        digits = digits.rstrip("~").translate(str.maketrans("0123456789", "9876543210"))
    return f"{'-' * (sign < 0)}{digits}e{sign * size - len(digits)}"


def _value_of_rank(rank: Row) -> Any:
    if rank.number is not None:
        return int(rank.number) if not rank.fraction else float(rank.number + rank.fraction)
    if rank.sign is not None:
        return display_value(f"n:{_long_number(rank.sign, rank.size, rank.digits)}")
    return display_value(f"t:{rank.moment}") if rank.moment is not None else rank.other
