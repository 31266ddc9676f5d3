"""`doctor`, `sweep`, `images`: the machine that runs the experiments."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.table import Table
from rich.text import Text

from streamquake.cluster.images.build import ensure, host_jars
from streamquake.cluster.images.recipes import SPARK_SETS, all_recipes
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.sweep import leftovers, sweep
from streamquake.harness.cli.guard import HELD, no_verdict
from streamquake.harness.cli.machine_check import examine, kind_of_problems
from streamquake.harness.cli.options import json_option
from streamquake.harness.cli.output import echo
from streamquake.harness.verdict.class_archive_writer import write_class_archive
from streamquake.reports.run.text import make_console
from streamquake.topologies.errors import ErrorKind

STYLES = {"ok": "green", "note": "yellow", "problem": "red"}


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> int:
    """Check whether this machine can run experiments; exit 3 if something must be fixed."""
    found = examine(DockerRuntime())
    if as_json:
        echo(json.dumps([asdict(check) for check in found], indent=2))
    else:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for column in ("", "", "found", "next step"):
            table.add_column(column, overflow="fold")
        for check in found:
            verdict = Text(check.verdict, style=STYLES[check.verdict])
            table.add_row(check.what, verdict, Text(check.finding), Text(check.next))
        make_console().print(table)
    problems = [check for check in found if check.verdict == "problem"]
    return no_verdict(kind_of_problems(problems)) if problems else HELD


@click.command("sweep")
@click.option("--all", "everything", is_flag=True, help="Kept clusters and running runs, too.")
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
def sweep_command(everything: bool, dry_run: bool) -> int:
    """Remove containers and networks of runs whose harness is dead."""
    runtime = DockerRuntime()
    runtime.check()
    swept = None if dry_run else sweep(runtime, everything=everything)
    left = leftovers(runtime, everything=everything) if swept is None else swept.removed
    word = "would remove" if dry_run else "removed"
    for run in left:
        things = f"{len(run.containers)} containers, {len(run.networks)} networks"
        echo(f"{word} {run.run_id}: {things}" + (" (kept on purpose)" if run.kept else ""))
    if not left:
        echo("nothing is left over")
    failures = [f"not removed: {failure}" for failure in (swept.failures if swept else ())]
    return no_verdict(ErrorKind.CLUSTER_FAILED, *failures) if failures else HELD


@click.group("images")
def images_command() -> None:
    """The container images of the shipped engines."""


@images_command.command("build")
def build_command() -> int:
    """Build the missing images; takes about a second when all are built. Also write the archive of
    Spark's classes, with which every verdict begins sooner."""
    runtime = DockerRuntime()
    runtime.check()
    ensure(all_recipes(), runtime.images(), echo)
    for kind in SPARK_SETS:
        host_jars(kind, echo)
    try:
        write_class_archive(echo)
    except Exception as error:  # noqa: BLE001 - the images are built; the archive only saves time
        echo(f"Spark: no archive of its classes was written: {error}")
    echo("images: all built")
    return HELD
