"""What a command prints about one run: the summary, or a JSON document."""

from __future__ import annotations

import json

from streamquake.harness.cli.output import echo
from streamquake.harness.experiment.loader import experiment_document
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.record.secret_settings import hide_secrets
from streamquake.reports.run.text import print_summary


def print_results(results: Results, folder: RunFolder, *, as_json: bool) -> None:
    """Print the summary of a run, or its results.json with the path of its folder."""
    if as_json:
        document = {"folder": str(folder.path), **hide_secrets(results.to_json())}
        echo(json.dumps(document, indent=2, default=str))
    else:
        print_summary(results, folder)


def print_plan_as_json(experiment: Experiment) -> None:
    """Print the plan of a run as run.json has it."""
    echo(json.dumps(hide_secrets(experiment_document(experiment)), indent=2, default=str))
