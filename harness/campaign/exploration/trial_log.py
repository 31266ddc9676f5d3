"""The trials of an exploration on disk: a line of JSON for each, so that it can be continued."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from streamquake.reports.record.json_lines import read_lines, write_lines
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended
from streamquake.topologies.model import Model
from streamquake.topologies.problems import bad_input

SCHEMA: Literal[1] = 1
M = TypeVar("M", bound=Model)


class LoggedTrial(Model):
    """One trial, or one repeat of a violated trial."""

    trial: int = Field(ge=1)
    run: str | None = Field(pattern=r"^\w[\w.-]*$")
    """The id of its run; None where the harness could not run it."""
    outcome: str = Field(pattern=f"^({'|'.join(map(str, Outcome))})$")
    ended: Ended
    why: str = ""
    seconds: float = 0.0
    repeat: int = 0
    """0 for the trial itself, else the number of the repeat."""
    cells: tuple[str, ...] = ()
    """What it tried."""
    in_vain: tuple[str, ...] = ()
    """What it planned and did not try, as a step took no effect or missed its window."""
    injected: tuple[str, ...] = ()
    """The fault and target of each step."""
    effective: tuple[str, ...] = ()
    """Those that took effect and disturbed the system."""
    new: tuple[str, ...] = ()
    """The behaviour that no earlier trial had shown."""

    @property
    def is_violated(self) -> bool:
        return self.outcome == str(Outcome.VIOLATED)


class LogHead(Model):
    """The first line: what is explored."""

    schema_: Literal[1] = Field(alias="schema", default=SCHEMA)
    experiment: str
    seed: int
    digest: str
    """Of the experiment: the trials of another one are drawn from another space."""


class TrialLog:
    """The file of an exploration's trials; it is on disk before the next trial begins."""

    def __init__(self, path: Path, head: LogHead) -> None:
        """With the trials that the file has. Raises BadInput for a file that is no such log, or the
        log of another space."""
        self.path = path
        self._head = head
        self.trials: list[LoggedTrial] = []
        lines = list(read_lines(path))
        if lines and (found := _parsed(LogHead, lines[0], path, 1)) != head:
            raise bad_input(
                str(path),
                f"it has the trials of another {found.experiment}, which has changed since; choose "
                "another seed, or remove the file",
            )
        for number, line in enumerate(lines[1:], 2):
            self.trials.append(_parsed(LoggedTrial, line, path, number))

    def add(self, trial: LoggedTrial) -> None:
        """Add a trial, and write the file."""
        self.trials.append(trial)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = (self._head, *self.trials)
        write_lines(self.path, [line.model_dump(mode="json", by_alias=True) for line in lines])

    @property
    def first_runs(self) -> Sequence[LoggedTrial]:
        """The trials without their repeats."""
        return [trial for trial in self.trials if not trial.repeat]

    def repeats_of(self, number: int) -> Sequence[LoggedTrial]:
        """The repeats of a trial."""
        return [each for each in self.trials if each.trial == number and each.repeat]


def _parsed(kind: type[M], line: Mapping[str, Any], path: Path, number: int) -> M:
    try:
        return kind.model_validate_json(json.dumps(line))
    except ValidationError as error:
        reason = str(error).splitlines()[0]
        raise bad_input(str(path), f"not a trial of an exploration: {reason}", number) from error
