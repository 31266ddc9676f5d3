"""`run` and `replay`: run an experiment, and exit by its outcome."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.cluster.cluster import all_nodes
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.cli.completion import complete_experiment, complete_run
from streamquake.harness.cli.guard import hindered, status_of
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
from streamquake.harness.experiment.loader import experiment_document, load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run import runner
from streamquake.harness.run.progress_views import open_view
from streamquake.harness.verdict.recorded_run import damage_as_bad_input, recorded_experiment
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.record.secret_settings import keys_of_hidden_secrets
from streamquake.topologies.limits import SEED_LIMIT
from streamquake.topologies.problems import BadInput, Problem


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
        show_plan = print_plan_as_json if as_json else print_plan
        show_plan(loaded)
        return 0
    return play(loaded, out=out, keep=keep, as_json=as_json, master=master, plain=plain)


@click.command("replay")
@click.argument("run", shell_complete=complete_run)
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Give a secret again.")
@click.option(
    "--run-commands",
    is_flag=True,
    help="Run the programs of its checks on this machine too; read them first.",
)
@out_option
@keep_option
@json_option
@master_option
@plain_option
def replay_command(
    run: str,
    sets: Sequence[str],
    run_commands: bool,
    out: Path,
    keep: bool,
    as_json: bool,
    master: str,
    plain: bool,
) -> int:
    """Run the plan of RUN (a run's id, the beginning of one, its folder, or `latest`) again.

    Same seed, load, schedule and targets; the timing in the containers may differ.
    """
    folder = RunFolder.open(out, run)
    experiment = recorded_experiment(folder, sets)
    _reject_hidden(experiment, str(folder.manifest))
    _reject_other_records(experiment, sets)
    with damage_as_bad_input(folder):
        load = experiment.workload.with_stored(folder.data)
    experiment = experiment.model_copy(update={"workload": load})
    if not run_commands:
        _reject_commands(experiment, str(folder.manifest))
    return play(experiment, out=out, keep=keep, as_json=as_json, master=master, plain=plain)


def _reject_hidden(experiment: Experiment, file: str) -> None:
    """Raise BadInput for each secret that the record does not hold."""
    places = tuple(keys_of_hidden_secrets(experiment_document(experiment)))
    if places:
        message = "this secret is not recorded; give it again, as --set"
        raise BadInput(
            Problem(file=file, path=place, message=f"{message} {place}=VALUE") for place in places
        )


def _reject_other_records(experiment: Experiment, sets: Sequence[str]) -> None:
    """Raise BadInput for a setting of a file with records: those of the run are sent again."""
    load = experiment.workload
    for place in (f"workload.{load.name}.{name}" for name in load.files):
        if any(each.partition("=")[0] == place for each in sets):
            message = (
                "a run is repeated with the records that it stored; run its experiment instead"
            )
            raise BadInput([Problem(file="--set", path=place, message=message)])


def _reject_commands(experiment: Experiment, file: str) -> None:
    """Raise BadInput for each program that the record would start on this machine: another person
    may have written it."""
    if experiment.commands:
        raise BadInput(
            Problem(
                file=file,
                path=f"checks.{title}",
                message=f"it runs `{shlex.join(command.argv)}` on this machine; to allow that, "
                "add --run-commands",
            )
            for title, command in experiment.commands.items()
        )


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
