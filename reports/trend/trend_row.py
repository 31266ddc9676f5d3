"""One line of the trend page: an experiment with its runs over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from streamquake.reports.store.stored_run import StoredRun
from streamquake.reports.suite.rate import Rate

PROGRAM = "program"


@dataclass(frozen=True, kw_only=True)
class VersionChange:
    """The first run on other software than the run before."""

    started_at: str
    text: str
    """What changed, such as `flink 2.2.1 → 2.3.0`."""


@dataclass(frozen=True, kw_only=True)
class TrendRow:
    """The runs of an experiment, the oldest first."""

    experiment: str
    runs: Sequence[StoredRun]
    rate: Rate
    """How many had the expected outcome."""
    figures: Sequence[str]
    """The figures to draw, as CHECK.COUNT."""
    regressions: Sequence[str] = ()
    """What became worse with the newest software, as sentences; empty where nothing did."""
    others: Sequence[str] = ()
    """What else is known of the change to the newest software."""

    @property
    def changes(self) -> Iterator[VersionChange]:
        """When the software changed."""
        for before, after in pairwise(self.runs):
            if before.key != after.key:
                yield VersionChange(
                    started_at=after.started_at, text=_difference(before, after) or "experiment"
                )


def _difference(before: StoredRun, after: StoredRun) -> str:
    """The versions that differ, as text; empty where all are equal."""
    old, new = _versions(before), _versions(after)
    names = [name for name in new if old.get(name) != new[name] and name != PROGRAM]
    if not names and old.get(PROGRAM) != new.get(PROGRAM):
        return "another build of streamquake"
    if not names and before.images != after.images:
        return "another image"
    return ", ".join(f"{name} {old.get(name, 'none')} → {new[name]}" for name in names)


def _versions(run: StoredRun) -> Mapping[str, str]:
    return {"streamquake": run.streamquake, PROGRAM: run.program, **run.versions}
