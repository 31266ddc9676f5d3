"""`replay`: run the plan of a recorded run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.harness.cli.completion import complete_run
from streamquake.harness.cli.guard import HELD
from streamquake.harness.cli.options import (
    json_option,
    keep_option,
    master_option,
    out_option,
    plain_option,
)
from streamquake.harness.cli.output import echo
from streamquake.harness.cli.recorded_plans import (
    commands_option,
    experiment_to_run,
    secrets_option,
)
from streamquake.harness.cli.runs import play, show_plan
from streamquake.harness.experiment.loader import experiment_document, experiment_of_plan
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.exact_replay import bound_schedule
from streamquake.harness.verdict.recorded_run import damage_as_bad_input
from streamquake.reports.record.history import read_history
from streamquake.reports.record.run_folder import RunFolder


@click.command("replay")
@click.argument("run", shell_complete=complete_run)
@click.option(
    "--exactly",
    is_flag=True,
    help="Inject into the same nodes at the same counts of checkpoints, batches or records.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and start nothing.")
@secrets_option
@commands_option
@out_option
@keep_option
@json_option
@master_option
@plain_option
def replay_command(
    run: str,
    exactly: bool,
    dry_run: bool,
    sets: Sequence[str],
    run_commands: bool,
    out: Path,
    keep: bool,
    as_json: bool,
    master: str,
    plain: bool,
) -> int:
    """Run the plan of RUN (a run's id, the beginning of one, its folder, or `latest`) again.

    Same seed, load, schedule and targets; the timing in the containers may differ. With --exactly
    each step is bound to the nodes and the counts of the record.
    """
    folder = RunFolder.open(out, run)
    experiment = experiment_to_run(folder, sets, run_commands=run_commands)
    if exactly:
        experiment = _exactly(experiment, folder, as_json=as_json)
    if dry_run:
        show_plan(experiment, as_json=as_json)
        return HELD
    return play(experiment, out=out, keep=keep, as_json=as_json, master=master, plain=plain)


def _exactly(experiment: Experiment, folder: RunFolder, *, as_json: bool) -> Experiment:
    """The experiment with the schedule as the run injected it; what cannot be bound is printed.
    Raises BadInput for a damaged record."""
    with damage_as_bad_input(folder):
        schedule = bound_schedule(experiment, read_history(folder.history))
        bound = experiment.model_copy(update={"faults": schedule.steps})
        bound = experiment_of_plan(experiment_document(bound), str(folder.manifest))
    for note in schedule.notes:
        echo(f"not exact: {note}", err=as_json)
    return bound
