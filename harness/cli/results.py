"""`results`: ask the store for the runs of a folder."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from streamquake.harness.campaign.regression import (
    baseline_condition,
    changes_against,
    is_regression,
    sentences,
)
from streamquake.harness.campaign.statistics.changes import Changes
from streamquake.harness.campaign.statistics.medians import Median
from streamquake.harness.campaign.statistics.rates import rate_of
from streamquake.harness.campaign.trend import trend_rows
from streamquake.harness.cli.completion import complete_figure
from streamquake.harness.cli.duration import DURATION
from streamquake.harness.cli.guard import HELD, VIOLATED, no_verdict
from streamquake.harness.cli.options import json_option, out_option
from streamquake.harness.cli.output import echo
from streamquake.reports.render import run_sentences
from streamquake.reports.run.text import make_console
from streamquake.reports.store.results_store import COLUMNS, ResultsStore
from streamquake.reports.store.stored_run import StoredRun
from streamquake.reports.trend.trend_html import render_trend

Groups = dict[tuple[str, str], list[StoredRun]]
"""(experiment, key) -> its runs."""


@click.command("results")
@click.option(
    "--since", type=DURATION, metavar="DURATION", help="Only runs that began within, such as 7d."
)
@click.option(
    "--where",
    default="",
    metavar="SQL",
    help=f"Only runs that fulfil a condition of SQLite over {', '.join(COLUMNS)}; a figure is "
    "`get(figures, 'recovery.restarted_s')`.",
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="CHECK.COUNT",
    shell_complete=complete_figure,
    help="Show a figure.",
)
@click.option("--each", is_flag=True, help="A line for each run instead of one for each key.")
@click.option(
    "--against",
    metavar="BASELINE",
    help="Show what changed against the runs of a day (2026-11-20), a version (flink=2.2.0) or an "
    "image (sha256:3f1c...); exits with 1 if an outcome became rarer or a time longer.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the trend of all selected runs as a page.",
)
@click.option("--rebuild", is_flag=True, help="Read all run folders again first.")
@json_option
@out_option
def results_command(
    since: timedelta | None,
    where: str,
    figures: Sequence[str],
    each: bool,
    against: str | None,
    page: Path | None,
    rebuild: bool,
    as_json: bool,
    out: Path,
) -> int:
    """Show the recorded runs: how many had the expected outcome, and their figures.

    Runs of one key have the same experiment, program, versions and images. A rate has its interval
    of 95 %, a figure its median and the interval of that.
    """
    store = ResultsStore(out)
    if rebuild or not store.path.exists():
        for problem in store.rebuild():
            echo(f"left out: {problem}", err=True)
    begin = "" if since is None else (datetime.now(UTC) - since).isoformat(timespec="seconds")
    runs = store.runs(where=where, since=begin)
    if page is not None and runs:
        echo(str(render_trend(trend_rows(runs, figures), page, out)), err=as_json)
        if against is None:
            return HELD
    if against is not None:
        baseline = store.runs(where=baseline_condition(against))
        return _show_changes(changes_against(baseline, runs, figures), as_json)
    if as_json:
        echo(json.dumps([asdict(run) for run in runs], indent=2))
        return HELD
    if not runs:
        echo(f"no such runs in {store.path}")
        return HELD
    table = _table_of_runs(runs, figures) if each else _table_of_keys(_grouped(runs), figures)
    make_console().print(table)
    return HELD


def _show_changes(changes: Mapping[str, Changes], as_json: bool) -> int:
    """Print what changed; the exit status."""
    if as_json:
        echo(json.dumps({name: asdict(found) for name, found in changes.items()}, indent=2))
    else:
        table = _table("experiment", "figure", "against the baseline")
        for cells in sentences(changes):
            table.add_row(*map(Text, cells))
        make_console().print(table)
    if not changes:
        message = "no experiment has runs both in the baseline and besides it"
        return no_verdict("nothing to compare", message)
    return VIOLATED if any(is_regression(found) for found in changes.values()) else HELD


def _grouped(runs: Sequence[StoredRun]) -> Groups:
    groups: Groups = defaultdict(list)
    for run in runs:
        groups[run.experiment, run.key].append(run)
    return dict(sorted(groups.items(), key=lambda item: (item[0][0], item[1][-1].run_id)))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _table_of_keys(groups: Groups, figures: Sequence[str]) -> Table:
    table = _table("experiment", "key", "as expected", "undecided", "last run", *figures)
    for (experiment, key), runs in groups.items():
        expected = rate_of(sum(run.as_expected == 1 for run in runs), len(runs))
        undecided = sum(run.as_expected is None for run in runs)
        cells = (experiment, key[:8], str(expected), str(undecided or ""), runs[-1].run_id)
        table.add_row(*map(Text, (*cells, *(_median_text(runs, name) for name in figures))))
    return table


def _median_text(runs: Sequence[StoredRun], name: str) -> str:
    values = [run.figures[name] for run in runs if name in run.figures]
    if not values:
        return ""
    found = Median.of(values)
    middle, low, high = map(run_sentences.counted, (found.median, found.low, found.high))
    return f"{middle} ({low} to {high}, n {found.n})" if found.n > 1 else middle


def _table_of_runs(runs: Sequence[StoredRun], figures: Sequence[str]) -> Table:
    table = _table("run", "experiment", "seed", "outcome", "expected", "load", *figures)
    for run in runs:
        table.add_row(*map(Text, _cells(run, figures)))
    return table


def _cells(run: StoredRun, figures: Sequence[str]) -> Iterator[str]:
    met = {1: "as expected", 0: f"expected {run.expected}", None: "not known"}[run.as_expected]
    ended = "" if run.ended == "completed" else f", {run.ended.replace('_', ' ')}"
    yield from (run.run_id, run.experiment, str(run.seed), f"{run.outcome}{ended}", met)
    yield "" if run.load_1m is None else f"{run.load_1m:g}"
    for name in figures:
        value: Any = run.figures.get(name)
        yield "" if value is None else run_sentences.counted(value)
