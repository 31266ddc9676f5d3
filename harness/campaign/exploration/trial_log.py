"""The trials of an exploration on disk: a line of JSON for each, so that it can be continued."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.record_json import loads
from streamquake.reports.record.results import Ended
from streamquake.topologies.model import Model
from streamquake.topologies.problems import bad_input

SCHEMA: Literal[1] = 1
M = TypeVar("M", bound=Model)


class LoggedTrial(Model):
    """One trial, or one repeat of a violated trial."""

    trial: int = Field(ge=1)
    run: str | None
    """The id of its run; None where the harness could not run it."""
    outcome: str
    ended: Ended
    why: str = ""
    seconds: float = 0.0
    repeat: int = 0
    """0 for the trial itself, else the number of the repeat."""
    cells: tuple[str, ...] = ()
    """What it tried."""
    in_vain: tuple[str, ...] = ()
    """What it planned and did not try, as a step took no effect or missed its window."""
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
    """The file of an exploration's trials. Each line is on disk before the next trial begins."""

    def __init__(self, path: Path, head: LogHead) -> None:
        self.path = path
        self.head = head
        self.trials: list[LoggedTrial] = []

    @classmethod
    def open(cls, path: Path, head: LogHead) -> TrialLog:
        """The log at a path, with the trials that it has. A last line that was cut by a crash is
        dropped. Raises BadInput for a file that is no such log, or the log of another space."""
        log = cls(path, head)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            log._append(head)
            return log
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines()
        if text and not text.endswith("\n"):
            lines.pop()
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        if not lines:
            log._append(head)
            return log
        found = _parsed(LogHead, lines[0], path, 1)
        if found != head:
            raise bad_input(
                str(path),
                f"it has the trials of another {found.experiment}, which has changed since; choose "
                "another seed, or remove the file",
            )
        log.trials = [
            _parsed(LoggedTrial, line, path, number) for number, line in enumerate(lines[1:], 2)
        ]
        return log

    def add(self, trial: LoggedTrial) -> None:
        self._append(trial)
        self.trials.append(trial)

    @property
    def first_runs(self) -> Sequence[LoggedTrial]:
        """The trials without their repeats."""
        return [trial for trial in self.trials if not trial.repeat]

    def repeats_of(self, number: int) -> Sequence[LoggedTrial]:
        """The repeats of a trial."""
        return [each for each in self.trials if each.trial == number and each.repeat]

    def _append(self, line: Model) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line.model_dump_json(by_alias=True) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _parsed(kind: type[M], line: str, path: Path, number: int) -> M:
    try:
        return kind.model_validate_json(json.dumps(loads(line)))
    except (ValueError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise bad_input(str(path), f"not a trial of an exploration: {reason}", number) from error
