"""The tries of every candidate of a shrink, on disk: a second call takes them over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from streamquake.harness.campaign.shrinking.failure import Failure
from streamquake.harness.campaign.shrinking.trials import Try, TryOutcome
from streamquake.reports.record.json_lines import read_lines, write_lines


class TriesFile:
    """One line of JSON for each try, with the key of its candidate and the failure that was looked
    for; tries that looked for another failure stay in the file and do not count."""

    def __init__(self, path: Path, failure: Failure) -> None:
        """Raises BadInput for a file that is damaged."""
        self._path = path
        self._failure = asdict(failure)
        self._lines = [*read_lines(path)]

    def of(self, key: str) -> Sequence[Try]:
        """The tries of a candidate, in their order."""
        wanted = {"candidate": key, **self._failure}
        return [_try_of(line) for line in self._lines if wanted.items() <= line.items()]

    def add(self, key: str, made: Try) -> None:
        """Add a try, and write the file."""
        self._lines.append({"candidate": key, **self._failure, **asdict(made)})
        write_lines(self._path, self._lines)


def _try_of(line: Mapping[str, Any]) -> Try:
    """The try of a line; one with an unknown outcome is undecided."""
    run, outcome = line.get("run"), line.get("outcome")
    known = outcome if outcome in [*TryOutcome] else TryOutcome.UNDECIDED
    return Try(
        run=run if isinstance(run, str) else None,
        outcome=TryOutcome(str(known)),
        why=str(line.get("why")),
    )
