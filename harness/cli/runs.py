"""`run`: run an experiment, and exit by its outcome."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.cluster.cluster import all_nodes
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.cli.completion import complete_experiment
from streamquake.harness.cli.guard import HELD, hindered, status_of
from streamquake.harness.cli.machine_check import hindrances
from streamquake.harness.cli.options import (
    json_option,
    keep_option,
    master_option,
    out_option,
    plain_option,
)
from streamquake.harness.cli.output import echo
from streamquake.harness.cli.plan import print_plan
from streamquake.harness.cli.run_output import print_plan_as_json, print_results
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run import runner
from streamquake.harness.run.progress_views import open_view
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.limits import SEED_LIMIT


@click.command("run")
@click.argument("experiment", shell_complete=complete_experiment)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_LIMIT),
    help="Seed to use instead of the document's or a random one.",
)
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Change one value.")
@out_option
@keep_option
@click.option("--dry-run", is_flag=True, help="Print the plan and start nothing.")
@json_option
@master_option
@plain_option
def run_command(
    experiment: str,
    seed: int | None,
    sets: Sequence[str],
    out: Path,
    keep: bool,
    dry_run: bool,
    as_json: bool,
    master: str,
    plain: bool,
) -> int:
    """Run EXPERIMENT, a shipped one by name or any by path.

    Exits with 0 held, 1 violated, 2 bad input, 3 undecided or failed to run, 130 interrupted.
    """
    loaded = load_experiment(experiment, sets=sets, seed=seed)
    if dry_run:
        show_plan(loaded, as_json=as_json)
        return HELD
    return play(loaded, out=out, keep=keep, as_json=as_json, master=master, plain=plain)


def show_plan(experiment: Experiment, *, as_json: bool) -> None:
    """Print the plan of an experiment, as text or as a JSON document."""
    if as_json:
        print_plan_as_json(experiment)
    else:
        print_plan(experiment)


def play(
    experiment: Experiment, *, out: Path, keep: bool, as_json: bool, master: str, plain: bool
) -> int:
    """Run an experiment, print its summary or its JSON document, and return the exit status."""
    # With --json the standard output holds only the document.
    echo(f"seed {experiment.seed}", err=as_json)
    clock = SystemClock()
    runtime = DockerRuntime(clock)
    if found := hindrances(runtime if all_nodes(experiment.topology) else None):
        return hindered(found)
    with open_view(plain=plain, stream=sys.stderr if as_json else sys.stdout) as view:
        results = runner.run(
            experiment,
            out=out,
            argv=sys.argv,
            keep=keep,
            view=view,
            runtime=runtime,
            clock=clock,
            master=master,
        )
    echo(err=as_json)
    print_results(results, RunFolder.open(out, results.run_id), as_json=as_json)
    return status_of(results)
