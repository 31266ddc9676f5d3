"""`check` and `report`: judge a recorded run again, and render its page again."""

from __future__ import annotations

from pathlib import Path

import click

from streamquake.harness.cli.completion import complete_run
from streamquake.harness.cli.guard import VIOLATED, status_of
from streamquake.harness.cli.options import json_option, master_option, out_option
from streamquake.harness.cli.output import echo
from streamquake.harness.cli.run_output import print_results
from streamquake.harness.reconcile.spark_session import SparkInBackground
from streamquake.harness.run.judging_again import judge_again, saved_results
from streamquake.harness.run.runner import save
from streamquake.harness.verdict.recorded_run import damage_as_bad_input
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.run.html import render_report
from streamquake.reports.run.text import print_summary


@click.command("check")
@click.argument("run", shell_complete=complete_run)
@out_option
@json_option
@master_option
def check_command(run: str, out: Path, as_json: bool, master: str) -> int:
    """Judge RUN again from its folder alone, without a cluster; exits as `run` does, and with 1 for
    a violated check even if the run did not complete."""
    folder = RunFolder.open(out, run)
    spark = SparkInBackground(master)
    try:
        results = judge_again(folder, spark.get, lambda line: echo(line, err=as_json))
        _save(results, folder, out)
    finally:
        spark.stop()
    print_results(results, folder, as_json=as_json)
    return VIOLATED if results.outcome == Outcome.VIOLATED else status_of(results)


def _save(results: Results, folder: RunFolder, out: Path) -> None:
    """Write the results; those of a read-only record are only printed. A record of another folder
    is not added to a store."""
    try:
        save(results, folder, stored=folder.path.parent == out.resolve())
    except OSError as error:
        echo(f"the results cannot be saved in the record: {error}", err=True)


@click.command("report")
@click.argument("run", shell_complete=complete_run)
@out_option
def report_command(run: str, out: Path) -> int:
    """Render the page of RUN again and print its summary."""
    folder = RunFolder.open(out, run)
    with damage_as_bad_input(folder):
        page = render_report(folder)
        results, damage = saved_results(folder)
        if results is not None:
            print_summary(results, folder)
    if results is None:
        echo(f"{page}\n{damage}: streamquake check {folder.path}")
    return 0
