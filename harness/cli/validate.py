"""`validate`: prints every problem of every file, and starts nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
from pyspark.sql import SparkSession

from streamquake.cluster.images.store import ImageStore
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.topology_validation import checked_topology
from streamquake.harness.campaign.suite.loader import SUITES, is_suite, suite_of
from streamquake.harness.cli.completion import documents_in
from streamquake.harness.cli.guard import BAD_INPUT, HELD
from streamquake.harness.cli.options import json_option
from streamquake.harness.cli.output import echo
from streamquake.harness.experiment.loader import EXPERIMENTS, experiment_of
from streamquake.harness.reconcile.spark_session import SparkInBackground
from streamquake.harness.run.foreign_images import foreign_image_problems
from streamquake.topologies.base_documents import merge_with_base
from streamquake.topologies.errors import StreamquakeError
from streamquake.topologies.loader import find_topology
from streamquake.topologies.named_files import SHIPPED, find_file, is_file
from streamquake.topologies.problems import BadInput, Problem, bad_input
from streamquake.topologies.yaml_document import Document, read_document


@click.command("validate")
@click.argument(
    "files", nargs=-1, required=True, shell_complete=documents_in(SHIPPED, EXPERIMENTS, SUITES)
)
@json_option
def validate_command(files: Sequence[str], as_json: bool) -> int:
    """Check FILES: topologies, experiments and suites, by path or by shipped name.

    Exits with 2 on problems.
    """
    # Only SQL needs the session, and no jars.
    spark = SparkInBackground("local[1]", jars=tuple)
    try:
        problems = {file: problems_of(file, spark.get) for file in files}
    finally:
        spark.stop()
    if as_json:
        echo(json.dumps(_as_json(problems), indent=2))
    else:
        for file, found in problems.items():
            for problem in found:
                echo(str(problem), err=True)
            if not found:
                echo(f"{file}: valid")
    return BAD_INPUT if any(problems.values()) else HELD


def problems_of(file: str, spark: Callable[[], SparkSession] | None = None) -> tuple[Problem, ...]:
    """Every problem of a topology, an experiment or a suite; with `spark` also of the SQL of an
    experiment's checks."""
    try:
        path = _find(file)
        document = read_document(path)
        if is_suite(document):
            suite_of(document, beside=path.parent)
            return ()
        if _is_experiment(document):
            experiment = experiment_of(document, beside=path.parent, spark=spark)
            found = foreign_image_problems(experiment.topology, _images)
            return tuple(document.problem(("topology", *at), message) for at, message in found)
        whole = merge_with_base(document, lambda name: find_topology(name, path.parent))
        topology, problems = checked_topology(whole)
        if topology is None or problems:
            return tuple(problems)
        found = foreign_image_problems(topology, _images)
        return tuple(whole.problem(at, message) for at, message in found)
    except BadInput as bad:
        return bad.problems


def _images() -> ImageStore | None:
    """The images of the container engine; None where none answers."""
    runtime = DockerRuntime()
    try:
        runtime.check()
        return runtime.images()
    except StreamquakeError:
        return None


def _find(file: str) -> Path:
    """The path of a file; else of a shipped experiment, topology or suite of that name. Raises
    BadInput."""
    if is_file(Path(file)):
        return Path(file)
    first_error = ""
    for kind, shipped in (("experiment", EXPERIMENTS), ("topology", SHIPPED), ("suite", SUITES)):
        try:
            return find_file(kind, file, shipped=shipped, suffix=".yaml", beside=None)
        except LookupError as error:
            first_error = first_error or str(error)
    raise bad_input(file, first_error)


def _is_experiment(document: Document) -> bool:
    """A topology has services; an experiment names a topology, or has one of its parts."""
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
