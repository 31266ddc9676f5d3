"""The tries of every candidate of a shrink, on disk: a second call takes them over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from streamquake.harness.campaign.shrinking.failure import Failure
from streamquake.harness.campaign.shrinking.trials import Try, TryOutcome
from streamquake.reports.record import atomic_files
from streamquake.reports.record.record_json import loads
from streamquake.topologies.parsing import value_text
from streamquake.topologies.problems import bad_input


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


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, none where there is no file. Raises BadInput with the
    number of a line that is no object."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise bad_input(str(path), f"it cannot be read: {error}; remove the file") from error
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            value = loads(line)
        except ValueError as error:
            raise bad_input(str(path), f"not JSON ({error}); remove the line", number) from error
        if not isinstance(value, dict):
            message = f"expected an object, got {value_text(value)}; remove the line"
            raise bad_input(str(path), message, number)
        yield value


def write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Replace a file by these objects, one on each line."""
    text = "".join(json.dumps(line, default=str) + "\n" for line in lines)
    atomic_files.write_text(path, text)


def _try_of(line: Mapping[str, Any]) -> Try:
    """The try of a line; one with an unknown outcome is undecided."""
    run, outcome = line.get("run"), line.get("outcome")
    known = outcome if outcome in [*TryOutcome] else TryOutcome.UNDECIDED
    return Try(
        run=run if isinstance(run, str) else None,
        outcome=TryOutcome(str(known)),
        why=str(line.get("why")),
    )
