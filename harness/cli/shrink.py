"""`shrink`: the smallest experiment that fails as a recorded run did."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import click

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.campaign.shared_resources import SharedResources
from streamquake.harness.campaign.shrinking.candidate import Candidate
from streamquake.harness.campaign.shrinking.failure import Failure
from streamquake.harness.campaign.shrinking.shrink_runner import ShrinkPlan, conduct
from streamquake.harness.campaign.shrinking.trials import Rule
from streamquake.harness.campaign.suite.suite_progress import CompactView
from streamquake.harness.cli.completion import complete_run
from streamquake.harness.cli.duration import DURATION
from streamquake.harness.cli.guard import hindered, status_of_outcome
from streamquake.harness.cli.machine_check import hindrances
from streamquake.harness.cli.options import json_option, master_option, out_option
from streamquake.harness.cli.output import echo, progress_printer
from streamquake.harness.cli.recorded_plans import (
    commands_option,
    experiment_to_run,
    secrets_option,
)
from streamquake.harness.run.recorded_targets import with_drawn_targets
from streamquake.harness.verdict.recorded_run import damage_as_bad_input
from streamquake.reports.record.history import read_history
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.shrink.shrink_text import print_shrink
from streamquake.topologies.problems import bad_input


@click.command("shrink")
@click.argument("run", shell_complete=complete_run)
@click.option(
    "--tries",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    metavar="K",
    help="How many tries of an experiment must fail.",
)
@click.option(
    "--of",
    "of_tries",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    metavar="N",
    help="How often an experiment is tried at most.",
)
@click.option("--check", default="", help="The violated check, instead of the first one.")
@click.option("--class", "found", default="", help="The class that it found, instead of the first.")
@click.option(
    "--for", "budget", type=DURATION, metavar="DURATION", help="Stop after this time, such as 30m."
)
@secrets_option
@commands_option
@out_option
@json_option
@master_option
def shrink_command(
    run: str,
    tries: int,
    of_tries: int,
    check: str,
    found: str,
    budget: timedelta | None,
    sets: Sequence[str],
    run_commands: bool,
    out: Path,
    as_json: bool,
    master: str,
) -> int:
    """Find the smallest experiment in which the same check finds the same class as in RUN.

    A second call goes on where the first one ended. Exits with 0 when an experiment was found, 2
    bad input, 3 when the failure did not appear again or no run was possible, 130 interrupted.
    """
    if tries > of_tries:
        raise click.UsageError(f"--tries {tries} must be at most --of {of_tries}")
    recorded = RunFolder.open(out, run)
    plan = shrink_plan(
        recorded,
        Rule.of(tries, of_tries),
        check=check,
        found=found,
        sets=sets,
        run_commands=run_commands,
    )
    clock = SystemClock()
    runtime = DockerRuntime(clock)
    if problems := hindrances(runtime):
        return hindered(problems)
    show_message = progress_printer(as_json=as_json)
    show_message(f"{plan.experiment}: {plan.failure}, in the run {plan.run}")
    resources = SharedResources(
        out=out,
        argv=sys.argv,
        again=_command_to_go_on(run, recorded),
        runtime=runtime,
        clock=clock,
        view=CompactView(show_message),
        show_message=show_message,
        master=master,
    )
    budget_s = None if budget is None else budget.total_seconds()
    results, folder = conduct(plan, resources, budget_s=budget_s)
    if as_json:
        echo(json.dumps(results.to_json(), indent=2, default=str))
    else:
        echo()
        print_shrink(results, folder)
    return status_of_outcome(results.outcome, results.ended, results.cause)


def shrink_plan(
    folder: RunFolder,
    rule: Rule,
    *,
    check: str = "",
    found: str = "",
    sets: Sequence[str] = (),
    run_commands: bool = False,
) -> ShrinkPlan:
    """What to shrink. Raises BadInput for a run without a failure, and for a damaged record."""
    experiment = experiment_to_run(folder, sets, run_commands=run_commands)
    if not folder.results.exists():
        message = f"it was not judged; judge it first: streamquake check {folder.path}"
        raise bad_input(str(folder.path), message)
    with damage_as_bad_input(folder):
        results = folder.read_results()
        history = read_history(folder.history)
    failure = Failure.of(results, str(folder.path), check, found)
    with damage_as_bad_input(folder):
        start = Candidate.of(with_drawn_targets(experiment, history))
        start.experiment(str(folder.manifest))
    return ShrinkPlan(
        run=folder.run_id, experiment=experiment.name, start=start, failure=failure, rule=rule
    )


def _command_to_go_on(run: str, folder: RunFolder) -> str:
    """The command line of this call, with the folder of the run: `latest` is another one now."""
    words = (str(folder.path) if word == run else word for word in sys.argv[1:])
    return shlex.join(["streamquake", *words])
