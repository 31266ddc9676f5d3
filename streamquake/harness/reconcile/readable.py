"""Findings as people read them: by the expressions they asked with, and by plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Row

from streamquake.harness.reconcile.canonical import shown
from streamquake.harness.reconcile.layout import MISSING, Layout
from streamquake.reports.outcome import Finding

ABSENT = "(no such field)"


def readable(finding: Finding, layout: Layout) -> Finding:
    """A finding of the comparison with the columns' names and values as the user knows them."""
    return replace(finding, detail=_values(finding.detail, layout))


def _values(detail: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in detail.items():
        if name in ("sent", "seen"):
            rows = [_values(row, layout) for row in value]
            # Where nothing is compared a copy has nothing to show but that it is there.
            found[name] = rows if any(rows) else len(rows)
        elif name.endswith(MISSING):
            continue
        elif detail.get(name + MISSING):
            found[layout.titles[name]] = ABSENT
        else:
            found[layout.titles.get(name, name)] = _value(name, value, layout)
    return found


def _value(name: str, value: Any, layout: Layout) -> Any:
    if name in layout.tagged:
        return shown(value)
    if isinstance(value, Row):  # a rank: a number, or else a text
        return value.other if value.number is None else int(value.number)
    return value
