"""The experiment of a record, to be run on this machine: another person may have written it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from streamquake.harness.experiment.loader import experiment_document
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.recorded_run import damage_as_bad_input, recorded_experiment
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.record.secret_settings import keys_of_hidden_secrets
from streamquake.topologies.problems import BadInput, Problem
from streamquake.topologies.yaml_document import path_text

secrets_option = click.option(
    "--set", "sets", multiple=True, metavar="PATH=VALUE", help="Give a secret again."
)
commands_option = click.option(
    "--run-commands",
    is_flag=True,
    help="Run the programs of its checks on this machine too; read them first.",
)


def experiment_to_run(folder: RunFolder, sets: Sequence[str], *, run_commands: bool) -> Experiment:
    """The experiment of a recorded run with the records that it stored. Raises BadInput for a
    damaged record, for each secret that is not given again, and for each program that it would
    start, unless `run_commands`."""
    experiment = recorded_experiment(folder, sets)
    _reject_hidden(experiment, str(folder.manifest))
    _reject_other_records(experiment, sets)
    with damage_as_bad_input(folder):
        load = experiment.workload.with_stored(folder.data)
    experiment = experiment.model_copy(update={"workload": load})
    if not run_commands:
        _reject_commands(experiment, str(folder.manifest))
    return experiment


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
    for place in map(path_text, experiment.workload.file_places()):
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
