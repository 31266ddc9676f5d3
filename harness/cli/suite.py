"""`suite`: many experiments, one cluster where possible, one table."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.campaign.suite.durations import Durations
from streamquake.harness.campaign.suite.loader import SUITES, load_suite
from streamquake.harness.campaign.suite.plan import SuitePlan, chosen_rows, plan_suite
from streamquake.harness.campaign.suite.shards import Shard, shard_of
from streamquake.harness.campaign.suite.suite_progress import CompactView
from streamquake.harness.campaign.suite.suite_runner import SuiteResources, conduct
from streamquake.harness.cli.completion import complete_experiment, documents_in
from streamquake.harness.cli.duration import DURATION
from streamquake.harness.cli.guard import HELD, hindered, status_of_outcome
from streamquake.harness.cli.machine_check import hindrances
from streamquake.harness.cli.options import json_option, master_option, out_option, plain_option
from streamquake.harness.cli.output import echo, progress_printer
from streamquake.harness.cli.shard import SHARD
from streamquake.harness.run.progress import View
from streamquake.harness.run.progress_views import open_view
from streamquake.reports.store.results_store import ResultsStore
from streamquake.reports.suite.suite_results import SuiteResults
from streamquake.reports.suite.suite_text import print_suite
from streamquake.topologies.limits import SEED_LIMIT


@click.command("suite")
@click.argument("suite", shell_complete=documents_in(SUITES))
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_experiment,
    help="Only rows with this experiment.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    help="Repeats of each row, instead of its own number.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_LIMIT),
    help="Seed of the first repeat; each further repeat adds one.",
)
@click.option(
    "--attempts",
    type=click.IntRange(1, 20),
    default=2,
    show_default=True,
    help="How often to try a run until it is decided.",
)
@out_option
@click.option(
    "--resume", is_flag=True, help="Reuse equal runs recorded in --out; run only the others."
)
@click.option(
    "--max-age",
    type=DURATION,
    default="24h",
    show_default=True,
    help="With --resume: reuse only runs that began less long ago.",
)
@click.option(
    "--for",
    "budget",
    type=DURATION,
    metavar="DURATION",
    help="Use this time, such as 6h: repeat the rows of which least is known by the runs in --out.",
)
@click.option("--shard", type=SHARD, help="Only one of N parts that take about equally long.")
@click.option(
    "--durations",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Balance the shards by the runs of this folder; the same for all shards.",
)
@click.option(
    "--max-failures",
    type=click.IntRange(min=1),
    metavar="N",
    help="End after N runs that certainly had not the expected outcome.",
)
@click.option(
    "--against",
    default="",
    metavar="BASELINE",
    help="Compare with the runs in --out of a day (2026-11-20), a version (flink=2.2.0) or an "
    "image (sha256:3f1c...); exits with 1 if an outcome became rarer or a time longer.",
)
@click.option("--dry-run", is_flag=True, help="Print the runs in their order and start nothing.")
@json_option
@click.option("--verbose", is_flag=True, help="Show each run as `run` does.")
@master_option
@plain_option
def suite_command(
    suite: str,
    only: Sequence[str],
    repeats: int | None,
    seed: int | None,
    attempts: int,
    out: Path,
    resume: bool,
    max_age: timedelta,
    budget: timedelta | None,
    shard: Shard | None,
    durations: Path | None,
    max_failures: int | None,
    against: str,
    dry_run: bool,
    as_json: bool,
    verbose: bool,
    master: str,
    plain: bool,
) -> int:
    """Run every row of SUITE: a shipped suite by name, a suite by path, or a folder of experiments.

    Exits with 0 when every outcome is the expected one, 1 when one is certainly not, 2 bad input,
    3 undecided or failed to run, 130 interrupted.
    """
    if budget is not None and (resume or repeats is not None):
        raise click.UsageError("--for decides itself how often to repeat, by the recorded runs")
    part = chosen_rows(load_suite(suite), only)
    if shard is not None:
        runs = ResultsStore(durations).runs() if durations else ()
        part = shard_of(part, shard, Durations.of(runs))
    plan = plan_suite(part, seed=seed, repeats=1 if budget else repeats)
    if dry_run:
        _print_plan(plan, as_json)
        return HELD
    echo(f"seed {plan.seed}", err=as_json)
    clock = SystemClock()
    runtime = DockerRuntime(clock)
    if found := hindrances(runtime):
        return hindered(found)
    show_message = progress_printer(as_json=as_json)
    with _view(show_message, verbose=verbose and not as_json, plain=plain) as view:
        resources = SuiteResources(
            out=out,
            argv=sys.argv,
            again=_repeat_command(suite, plan.seed, only, repeats, budget, shard, durations),
            runtime=runtime,
            clock=clock,
            view=view,
            show_message=show_message,
            master=master,
            attempts=attempts,
            resume_since=datetime.now(UTC) - max_age if resume else None,
            budget_s=None if budget is None else budget.total_seconds(),
            max_failures=max_failures,
            against=against,
        )
        results, folder = conduct(plan, resources)
    if as_json:
        echo(json.dumps(results.to_json(), indent=2, default=str))
    else:
        echo()
        print_suite(results, folder)
    return status_of_suite(results)


def status_of_suite(results: SuiteResults) -> int:
    """The exit status of a suite."""
    return status_of_outcome(results.verdict, results.ended, results.cause)


@contextmanager
def _view(show_message: Callable[[str], None], *, verbose: bool, plain: bool) -> Iterator[View]:
    if not verbose:
        yield CompactView(show_message)
        return
    with open_view(plain=plain) as view:
        yield view


def _repeat_command(
    suite: str,
    seed: int,
    only: Sequence[str],
    repeats: int | None,
    budget: timedelta | None,
    shard: Shard | None,
    durations: Path | None,
) -> str:
    """The command that repeats the same runs, or spends the same budget."""
    argv = ["streamquake", "suite", suite, "--seed", str(seed)]
    for name in only:
        argv += ["--only", name]
    for option, value in (
        ("--repeats", repeats),
        ("--for", budget and f"{budget.total_seconds():g}s"),
        ("--shard", shard),
        ("--durations", durations if shard else None),
    ):
        argv += [] if value is None else [option, str(value)]
    return shlex.join(argv)


def _print_plan(plan: SuitePlan, as_json: bool) -> None:
    rows = [
        {
            "number": number,
            "rows": [{"row": part.row + 1, "role": part.role} for part in run.parts],
            "experiment": run.experiment.name,
            "repeat": run.repeat + 1,
            "seed": run.experiment.seed,
            "topology": run.experiment.topology.name,
            "expected": run.experiment.expected.to_json(),
        }
        for number, run in enumerate(plan.runs, start=1)
    ]
    if as_json:
        document = {"suite": plan.suite.name, "seed": plan.seed, "runs": rows}
        echo(json.dumps(document, indent=2))
        return
    echo(f"suite {plan.suite.name}: {len(plan.suite.rows)} rows, {len(rows)} runs")
    for number, run in enumerate(plan.runs, start=1):
        parts = ", ".join(f"row {part.row + 1} {part.role}" for part in run.parts)
        again = f", repeat {run.repeat + 1}" if run.repeat else ""
        echo(
            f"{number:>4}  {run.experiment.name} ({parts}{again}, seed {run.experiment.seed}) on "
            f"{run.experiment.topology.name}, expected {run.experiment.expected}"
        )
