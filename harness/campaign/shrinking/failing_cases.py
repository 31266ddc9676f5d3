"""The failing cases that shrinks found, in the folder of the runs: later shrinks try them first.

A case is data that another person may have written. It counts only as a part of the experiment of
the run at hand: it adds no program, file or setting of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from streamquake.harness.campaign.shrinking.candidate import Candidate
from streamquake.harness.campaign.shrinking.failure import Failure
from streamquake.harness.verdict.recorded_run import DAMAGED
from streamquake.reports.record.json_lines import read_lines, write_lines
from streamquake.reports.record.secret_settings import hide_secrets
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import frozen

FILE = "failing-cases.jsonl"
MOST = 3
"""How many known cases a shrink tries: each that does not fail any more costs runs."""
OWN_KEYS = ("seed", "description", "faults")
"""The keys of a document that are not compared as a whole."""
OWN_STEP_KEYS = ("target", "when", "at_s")


class FailingCases:
    """The cases of a folder of runs, one line of JSON for each shrink."""

    def __init__(self, out: Path) -> None:
        """Raises BadInput for a damaged file."""
        self._path = out / FILE
        self._lines = [*read_lines(self._path)]

    def known(self, start: Candidate, failure: Failure) -> list[Candidate]:
        """The smallest cases with this failure that are parts of a candidate and smaller."""
        found = (
            case
            for line in self._lines
            if (line.get("check"), line.get("found")) == (failure.check, failure.found)
            for case in _candidate_of(line)
            if is_part(case, start) and _is_valid(case, self._path) and case.size < start.size
        )
        return sorted(found, key=lambda case: case.size)[:MOST]

    def keep(self, shrink: str, case: Candidate, failure: Failure, tries: str) -> None:
        """Keep the case of a shrink in place of its earlier one, and write the file."""
        line = {
            "shrink": shrink,
            "experiment": case.document["name"],
            "check": failure.check,
            "found": failure.found,
            "tries": tries,
            "steps": list(case.steps),
            "document": hide_secrets(case.document),
        }
        self._lines = [each for each in self._lines if each.get("shrink") != shrink] + [line]
        write_lines(self._path, self._lines)


def is_part(case: Candidate, whole: Candidate) -> bool:
    """Whether each value of a case is in the other candidate too, or is a smaller number there.
    Targets, triggers and the seed may differ: they belong to one run."""
    if not all(0 < number <= len(whole.steps) for number in case.steps):
        return False
    pairs = [(step, whole.faults[n - 1]) for step, n in zip(case.faults, case.steps, strict=True)]
    pairs = [(_without(step, OWN_STEP_KEYS), original) for step, original in pairs]
    pairs.append((_without(case.document, OWN_KEYS), whole.document))
    return all(_is_part(value, of) for value, of in pairs)


def _is_valid(case: Candidate, file: Path) -> bool:
    """Whether a case is an experiment at all: a part of one need not be."""
    try:
        case.experiment(str(file))
    except (BadInput, *DAMAGED):
        return False
    return True


def _candidate_of(line: Mapping[str, Any]) -> Iterator[Candidate]:
    """The candidate of a line, if it has one."""
    document, steps = frozen(line.get("document")), frozen(line.get("steps"))
    if not isinstance(document, Mapping) or not isinstance(steps, tuple):
        return
    entries = document.get("faults")
    numbers = tuple(each for each in steps if type(each) is int)
    if isinstance(entries, tuple) and len(entries) == len(numbers) == len(steps):
        yield Candidate(document=document, steps=numbers)


def _is_part(value: Any, of: Any) -> bool:
    if isinstance(value, Mapping):
        return isinstance(of, Mapping) and all(
            key in of and _is_part(part, of[key]) for key, part in value.items()
        )
    if isinstance(value, tuple):
        same = isinstance(of, tuple) and len(value) == len(of)
        return same and all(map(_is_part, value, of))
    is_smaller = type(value) is type(of) and isinstance(value, int | float) and value < of
    return bool(value == of or (is_smaller and value > 0))


def _without(mapping: Any, keys: tuple[str, ...]) -> Any:
    if not isinstance(mapping, Mapping):
        return mapping
    return {key: value for key, value in mapping.items() if key not in keys}
