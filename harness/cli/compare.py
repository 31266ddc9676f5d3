"""`compare`: one experiment on several topologies, one table and one chart."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.campaign.comparison.comparison_runner import conduct
from streamquake.harness.campaign.shared_resources import SharedResources
from streamquake.harness.campaign.suite.suite_progress import CompactView
from streamquake.harness.cli.completion import complete_experiment, complete_topology
from streamquake.harness.cli.guard import HELD, hindered, status_of_outcome
from streamquake.harness.cli.machine_check import hindrances
from streamquake.harness.cli.options import json_option, master_option, out_option, plain_option
from streamquake.harness.cli.output import echo, progress_printer
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.progress_views import open_view
from streamquake.reports.comparison.comparison_text import print_comparison
from streamquake.topologies.limits import SEED_LIMIT
from streamquake.topologies.problems import bad_input


@click.command("compare")
@click.argument("experiment", shell_complete=complete_experiment)
@click.option(
    "--topology",
    "topologies",
    multiple=True,
    required=True,
    metavar="TOPOLOGY",
    shell_complete=complete_topology,
    help="A shipped topology by name, or any by path; at least two.",
)
@click.option(
    "--seed", type=click.IntRange(0, SEED_LIMIT), help="Seed of all runs, instead of a random one."
)
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Change one value.")
@out_option
@click.option("--dry-run", is_flag=True, help="Print the runs in their order and start nothing.")
@json_option
@master_option
@plain_option
def compare_command(
    experiment: str,
    topologies: Sequence[str],
    seed: int | None,
    sets: Sequence[str],
    out: Path,
    dry_run: bool,
    as_json: bool,
    master: str,
    plain: bool,
) -> int:
    """Run EXPERIMENT on each TOPOLOGY with the same seed, load and schedule.

    Exits with 0 when each run has the expected outcome and exactly-once outputs have equal values,
    1 when not, 2 bad input, 3 undecided or failed to run, 130 interrupted.
    """
    experiments = _experiments(experiment, topologies, seed, sets)
    if dry_run:
        _print_plan(experiments, as_json)
        return HELD
    clock = SystemClock()
    runtime = DockerRuntime(clock)
    if found := hindrances(runtime):
        return hindered(found)
    show_message = progress_printer(as_json=as_json)
    with nullcontext(CompactView(show_message)) if as_json else open_view(plain=plain) as view:
        resources = SharedResources(
            out=out,
            argv=sys.argv,
            again=_repeat_command(experiment, topologies, experiments[0].seed, sets),
            runtime=runtime,
            clock=clock,
            view=view,
            show_message=show_message,
            master=master,
        )
        comparison, folder = conduct(experiments, resources)
    if as_json:
        echo(json.dumps(comparison.to_json(), indent=2, default=str))
    else:
        echo()
        print_comparison(comparison, folder)
    return status_of_outcome(comparison.verdict, comparison.ended, comparison.cause)


def _experiments(
    name: str, topologies: Sequence[str], seed: int | None, sets: Sequence[str]
) -> list[Experiment]:
    """The experiment for each topology, all with one seed. Raises BadInput."""
    if len(set(topologies)) < max(2, len(topologies)):
        raise bad_input(
            "--topology",
            f"expected two or more topologies, got {', '.join(topologies)}; "
            "give the option once for each",
        )
    found: list[Experiment] = []
    for topology in topologies:
        seed = found[0].seed if found else seed
        found.append(load_experiment(name, sets=(f"topology={topology}", *sets), seed=seed))
    return found


def _repeat_command(name: str, topologies: Sequence[str], seed: int, sets: Sequence[str]) -> str:
    argv = ["streamquake", "compare", name]
    for topology in topologies:
        argv += ["--topology", topology]
    argv += ["--seed", str(seed)]
    for setting in sets:
        argv += ["--set", setting]
    return shlex.join(argv)


def _print_plan(experiments: Sequence[Experiment], as_json: bool) -> None:
    if as_json:
        runs = [
            {
                "experiment": planned.name,
                "topology": planned.topology.name,
                "seed": planned.seed,
                "expected": planned.expected.to_json(),
            }
            for planned in experiments
        ]
        echo(json.dumps({"runs": runs}, indent=2))
        return
    for number, planned in enumerate(experiments, start=1):
        echo(
            f"{number:>4}  {planned.name} on {planned.topology.name}, seed {planned.seed}, "
            f"expected {planned.expected}"
        )
