"""`check` and `report`: judge a recorded run again, and draw its page again."""

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
from streamquake.harness.verdict.recorded_run import of_record, recorded_experiment
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
    what is violated, whatever became of the run."""
    folder = RunFolder.open(out, run)
    experiment = recorded_experiment(folder)
    before, reason = _before(folder)
    if before and (before.experiment, before.seed) != (experiment.name, experiment.seed):
        before, reason = None, "what was judged before are the results of another run"
    elif before and before.ended != "completed":
        # Else it is what was missing of the record, which is looked at anew.
        reason = before.reason
    spark = SparkInBackground(master)
    try:
        if experiment.job is not None:  # without one the promise is our own
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
        _keep(results, folder)
    finally:
        spark.stop()
    print_summary(results, folder)
    return VIOLATED if results.outcome == Outcome.VIOLATED else status_of(results)


def _keep(results: Results, folder: RunFolder) -> None:
    """Write what was judged; a record that cannot be written to is judged as well."""
    try:
        save(results, folder)
    except OSError as error:
        echo(f"what was judged cannot be kept in the record: {error}", err=True)


@click.command("report")
@click.argument("run")
@out_option
def report_command(run: str, out: Path) -> int:
    """Draw the page of RUN again and print its summary."""
    folder = RunFolder.open(out, run)
    with of_record(folder):
        page = render_report(folder)
        results, damage = _before(folder)
        if results is not None:
            print_summary(results, folder)
    if results is None:
        echo(f"{page}\n{damage}: streamquake check {folder.path}")
    return 0


def _before(folder: RunFolder) -> tuple[Results | None, str]:
    """What was judged when the run ended, or why that is not known."""
    try:
        return folder.read_results(), ""
    except FileNotFoundError:
        return None, "the harness ended before it judged the run"
    except (OSError, ValueError, RecursionError) as error:
        return None, f"what was judged before cannot be read ({error})"
