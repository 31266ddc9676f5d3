"""`check` and `report`: judge a recorded run again, and render its page again."""

from __future__ import annotations

from pathlib import Path

import click

from streamquake.harness.cli.guard import VIOLATED, status_of
from streamquake.harness.cli.options import master_option, out_option
from streamquake.harness.cli.output import echo
from streamquake.harness.experiment.promise_sql import reject_unsafe_sql
from streamquake.harness.reconcile.spark_session import SparkInBackground
from streamquake.harness.run.runner import save
from streamquake.harness.verdict.judge import judge
from streamquake.harness.verdict.recorded_run import damage_as_bad_input, recorded_experiment
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.run.html import render_report
from streamquake.reports.run.text import print_summary


@click.command("check")
@click.argument("run")
@out_option
@master_option
def check_command(run: str, out: Path, master: str) -> int:
    """Judge RUN again from its folder alone, without a cluster; exits as `run` does, and with 1 for
    a violated check even if the run did not complete."""
    folder = RunFolder.open(out, run)
    experiment = recorded_experiment(folder)
    before, reason = _saved_results(folder)
    if before and (before.experiment, before.seed) != (experiment.name, experiment.seed):
        before, reason = None, "the saved results belong to another run"
    elif before and before.ended != "completed":
        # The reason of a completed run is a missing part of the record, which is checked again.
        reason = before.reason
    spark = SparkInBackground(master)
    try:
        if experiment.job is not None:  # without a job, Streamquake itself defines the promise
            reject_unsafe_sql(experiment.promise, str(folder.manifest), spark.get)
        results = judge(
            experiment,
            folder,
            run_id=folder.run_id,
            ended=before.ended if before else "interrupted",
            cause=before.cause if before else "",
            reason=reason,
            warnings=before.warnings if before else (),
            spark=spark.get,
            show_message=echo,
        )
        _save(results, folder)
    finally:
        spark.stop()
    print_summary(results, folder)
    return VIOLATED if results.outcome == Outcome.VIOLATED else status_of(results)


def _save(results: Results, folder: RunFolder) -> None:
    """Write the results; those of a read-only record are only printed."""
    try:
        save(results, folder)
    except OSError as error:
        echo(f"the results cannot be saved in the record: {error}", err=True)


@click.command("report")
@click.argument("run")
@out_option
def report_command(run: str, out: Path) -> int:
    """Render the page of RUN again and print its summary."""
    folder = RunFolder.open(out, run)
    with damage_as_bad_input(folder):
        page = render_report(folder)
        results, damage = _saved_results(folder)
        if results is not None:
            print_summary(results, folder)
    if results is None:
        echo(f"{page}\n{damage}: streamquake check {folder.path}")
    return 0


def _saved_results(folder: RunFolder) -> tuple[Results | None, str]:
    """The saved results, or why there are none."""
    try:
        return folder.read_results(), ""
    except FileNotFoundError:
        return None, "the harness ended before it judged the run"
    except (OSError, ValueError, RecursionError) as error:
        return None, f"the saved results cannot be read ({error})"
