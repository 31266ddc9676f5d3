"""`validate`: every problem of every file, and nothing started."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from streamquake.cluster.validate import checked_topology
from streamquake.harness.cli.guard import BAD_INPUT, HELD
from streamquake.harness.cli.options import json_option
from streamquake.harness.loader import EXPERIMENTS, experiment_of
from streamquake.topologies.finding import SHIPPED, find_file
from streamquake.topologies.problems import BadInput, Problem
from streamquake.topologies.yaml_document import Document, read_document


@click.command("validate")
@click.argument("files", nargs=-1, required=True)
@json_option
def validate_command(files: Sequence[str], as_json: bool) -> int:
    """Check FILES, topologies and experiments, by path or by shipped name; exit 2 on problems."""
    problems = {file: problems_of(file) for file in files}
    if as_json:
        click.echo(json.dumps(_as_json(problems), indent=2))
    else:
        for file, found in problems.items():
            for problem in found:
                click.echo(str(problem), err=True)
            if not found:
                click.echo(f"{file}: valid")
    return BAD_INPUT if any(problems.values()) else HELD


def problems_of(file: str) -> tuple[Problem, ...]:
    """Everything that is wrong with a topology or an experiment."""
    try:
        path = _find(file)
        document = read_document(path)
        if _is_experiment(document):
            experiment_of(document, beside=path.parent)
            return ()
        return tuple(checked_topology(document)[1])
    except BadInput as bad:
        return bad.problems


def _find(file: str) -> Path:
    """By path first, since files are what is asked for; then a shipped experiment or topology."""
    if Path(file).is_file():
        return Path(file)
    try:
        return find_file("experiment", file, shipped=EXPERIMENTS, suffix=".yaml", beside=None)
    except LookupError as no_experiment:
        try:
            return find_file("topology", file, shipped=SHIPPED, suffix=".yaml", beside=None)
        except LookupError:
            raise BadInput([Problem(file=file, message=str(no_experiment))]) from None


def _is_experiment(document: Document) -> bool:
    """A topology has services; an experiment names a topology, or has parts that none has."""
    parts = {"topology", "workload", "job", "faults", "checks"}
    return bool(parts & document.data.keys()) or "services" not in document.data


def _as_json(problems: Mapping[str, Sequence[Problem]]) -> list[dict[str, object]]:
    return [
        {
            "file": file,
            "valid": not found,
            "problems": [
                {"file": p.file, "line": p.line, "path": p.path, "message": p.message}
                for p in found
            ],
        }
        for file, found in problems.items()
    ]
