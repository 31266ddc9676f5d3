"""`selftest`: proves that reconciliation finds what is planted, exactly."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streamquake.harness.cli.guard import status_of_outcome
from streamquake.harness.cli.options import json_file_option
from streamquake.harness.cli.output import echo
from streamquake.harness.experiment.loader import LARGEST_SEED
from streamquake.harness.reconcile.spark_session import spark_session, stop_spark
from streamquake.harness.selftest.cells import cells_matching, quick_cells, wide_cells
from streamquake.harness.selftest.result import CellResult
from streamquake.harness.selftest.selftest_runner import Plan, run_selftest
from streamquake.harness.selftest.table import print_table
from streamquake.reports.record.atomic_files import write_text
from streamquake.reports.render.terminal import TerminalConsole

RECORDS = 20_000
"""Enough for several anomalies at a rate of 1 in 1,000; more only takes longer."""
LARGE_RECORDS = 1_000_000
SMALL_SESSION = 2_000_000
"""Up to this many records the quick compiler is faster (see `harness/reconcile/spark_session.py`).
"""


@click.command("selftest")
@click.option(
    "--seed", type=click.IntRange(0, LARGEST_SEED), help="Seed to use instead of a random one."
)
@click.option(
    "--records",
    type=click.IntRange(min=8),
    metavar="N",
    help=f"Records of each data shape; {RECORDS:,} unless given.",
)
@click.option(
    "--large",
    is_flag=True,
    help=f"For nightly runs: {LARGE_RECORDS:,} records unless --records is given, and more cells.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="CLASS[/RATE[/SHAPE]]",
    help="Only these cells; '*' matches any text, so '*' alone selects every combination.",
)
@json_file_option("Write the result of every cell to FILE.")
def selftest_command(
    seed: int | None, records: int | None, large: bool, only: Sequence[str], json_file: Path | None
) -> int:
    """Plant anomalies of every class in data of several shapes, and check that
    reconciliation finds exactly these.

    Judges a few cells of every class, others for another seed; with --large every class at every
    rate and in every shape, though not at every rate in every shape; with --only '*' every cell.
    Exits with 0 when it found exactly what was planted, 1 when not, 2 bad input, 3 when it could
    not run.
    """
    seed = secrets.randbelow(LARGEST_SEED) if seed is None else seed
    count = records or (LARGE_RECORDS if large else RECORDS)
    cells = (
        cells_matching(only, count)
        if only
        else wide_cells(count)
        if large
        else quick_cells(count, seed)
    )
    plan = Plan(
        seed=seed,
        records=count,
        cells=tuple(cells),
        again=_repeat_command(seed, count, large, only),
    )
    echo(f"seed {seed}")
    with _progress(len(cells)) as show_result:
        spark = spark_session(small=count <= SMALL_SESSION)
        try:
            results = run_selftest(plan, spark, show_result=show_result)
        finally:
            stop_spark(spark)
    print_table(results)
    if json_file is not None:
        write_text(json_file, json.dumps(results.to_json(), indent=2) + "\n")
    return status_of_outcome(results.outcome, cause=results.cause)


def _repeat_command(seed: int, records: int, large: bool, only: Sequence[str]) -> str:
    argv = ["streamquake", "selftest", "--seed", str(seed), "--records", str(records)]
    argv += ["--large"] * large
    for pattern in only:
        argv += ["--only", pattern]
    return shlex.join(argv)


@contextmanager
def _progress(cells: int) -> Iterator[Callable[[CellResult], None]]:
    """A progress bar on the error stream; no bar where that is not a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = TerminalConsole(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("starting Spark", total=cells)

        def show_result(result: CellResult) -> None:
            bar.update(task, description=str(result.cell), advance=1)

        yield show_result
