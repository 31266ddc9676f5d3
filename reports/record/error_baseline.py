"""A baseline: a YAML file with the errors that earlier runs logged, which are expected again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from streamquake.reports.record import atomic_files
from streamquake.reports.record.logged_errors import LoggedError
from streamquake.topologies.model import Model
from streamquake.topologies.parsing import parse
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import read_document
from streamquake.topologies.yaml_text import yaml_text


class KnownError(Model):
    """One error of a baseline."""

    error: Annotated[str, Field(min_length=1)]
    """Its signature."""
    runs: Annotated[int, Field(ge=1)] = 1
    """How many runs logged it."""
    example: str = ""


class ErrorBaseline(Model):
    """The errors of some runs."""

    of_runs: Annotated[int, Field(ge=1)]
    """How many runs were read."""
    errors: tuple[KnownError, ...]


def read_baseline(path: Path) -> ErrorBaseline:
    """Raises BadInput for a file that is no baseline."""
    baseline, problems = parse(ErrorBaseline, read_document(path))
    if baseline is None or problems:
        raise BadInput(problems)
    return baseline


def write_baseline(path: Path, runs: Sequence[Sequence[LoggedError]]) -> ErrorBaseline:
    """Write the errors of runs as a baseline, those of most runs first."""
    seen = Counter(error.signature for errors in runs for error in errors)
    examples = {error.signature: error.text for errors in reversed(runs) for error in errors}
    baseline = ErrorBaseline(
        of_runs=len(runs),
        errors=tuple(
            KnownError(error=signature, runs=count, example=examples[signature])
            for signature, count in sorted(seen.items(), key=lambda item: (-item[1], item[0]))
        ),
    )
    atomic_files.write_text(path, yaml_text(baseline.model_dump(), width=1_000))
    return baseline
