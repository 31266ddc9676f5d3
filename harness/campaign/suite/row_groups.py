"""Rows that share experiments belong together: a run of such an experiment counts in all of them.

A shard of a suite, and a repeat within a budget of time, are whole groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamquake.harness.campaign.suite.loader import Row

RowGroup = tuple[int, ...]
"""The numbers of its rows."""


def row_groups(rows: Sequence[Row]) -> list[RowGroup]:
    """The groups in the order of their first rows. A row that is not measured is one by itself."""
    groups: list[tuple[list[int], set[Path]]] = []
    for number, row in enumerate(rows):
        members, paths = [number], set(experiments_of(row))
        for group in [group for group in groups if group[1] & paths]:
            groups.remove(group)
            members, paths = group[0] + members, group[1] | paths
        groups.append((sorted(members), paths))
    return sorted(tuple(members) for members, _ in groups)


def experiments_of(row: Row) -> list[Path]:
    """The experiments of a row: its own, those of its series, its control."""
    return [path for path in (row.experiment, *row.series, row.control) if path is not None]
