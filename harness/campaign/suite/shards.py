"""Shards: parts of a suite that take about equally long, for several machines.

The parts depend only on the suite and the durations, so machines that are given the same ones split
it in the same way, and every row is in exactly one part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamquake.harness.campaign.suite.durations import Durations
from streamquake.harness.campaign.suite.loader import Row, Suite
from streamquake.harness.campaign.suite.row_groups import RowGroup, experiments_of, row_groups
from streamquake.harness.experiment.loader import load_experiment
from streamquake.topologies.problems import bad_input


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One of `of` parts, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def shard_of(suite: Suite, shard: Shard, durations: Durations) -> Suite:
    """The rows of a shard, in the order of the suite. Raises BadInput where it would be empty.

    The longest group goes to the shard with the least so far (longest processing time first,
    https://en.wikipedia.org/wiki/Longest-processing-time-first_scheduling).
    """
    seconds = {
        group: _seconds(suite, group, durations)
        for group in row_groups(suite.rows)
        if experiments_of(suite.rows[group[0]])
    }
    totals = [0.0] * shard.of
    parts: list[list[int]] = [[] for _ in totals]
    for group in sorted(seconds, key=lambda group: (-seconds[group], group)):
        least = totals.index(min(totals))
        totals[least] += seconds[group]
        parts[least] += group
    # What cannot be measured takes no time, and is shown by the first part.
    not_measured = [n for n, row in enumerate(suite.rows) if not experiments_of(row)]
    rows = sorted(parts[shard.number - 1])
    if not rows:
        message = (
            f"shard {shard} of {suite.name} is empty: rows that share experiments stay together"
        )
        raise bad_input("--shard", f"{message}, so it can be split into at most {len(seconds)}")
    shown = sorted(rows + not_measured) if shard.number == 1 else rows
    return replace(suite, rows=tuple(suite.rows[number] for number in shown))


def _seconds(suite: Suite, group: RowGroup, durations: Durations) -> float:
    """How long the runs of a group take; an experiment of several rows is run once a repeat."""
    repeats = {
        path: max(row.source.repeats for row in _rows_with(path, suite, group))
        for number in group
        for path in experiments_of(suite.rows[number])
    }
    return sum(
        count * durations.expected_s(load_experiment(str(path), seed=0))
        for path, count in repeats.items()
    )


def _rows_with(path: object, suite: Suite, group: RowGroup) -> list[Row]:
    return [suite.rows[n] for n in group if path in experiments_of(suite.rows[n])]
