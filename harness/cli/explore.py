"""`explore`: trials with drawn schedules and settings."""

from __future__ import annotations

import json
import random
import secrets
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.campaign.clusters.pool import ClusterPool
from streamquake.harness.campaign.exploration.explorer import Exploration, ExplorationLimits
from streamquake.harness.campaign.exploration.guidance import Guidance
from streamquake.harness.campaign.exploration.knowledge import learn_from_runs
from streamquake.harness.campaign.exploration.trial_drawing import TrialSpace
from streamquake.harness.campaign.shared_resources import RunAttempt, SharedResources
from streamquake.harness.campaign.shrinking.shrink_runner import conduct
from streamquake.harness.campaign.shrinking.trials import Rule
from streamquake.harness.campaign.suite.suite_progress import CompactView
from streamquake.harness.cli.completion import complete_experiment
from streamquake.harness.cli.duration import DURATION
from streamquake.harness.cli.guard import HELD, INTERRUPTED, hindered, status_of_outcome
from streamquake.harness.cli.machine_check import hindrances
from streamquake.harness.cli.options import json_option, master_option, out_option
from streamquake.harness.cli.output import echo, progress_printer
from streamquake.harness.cli.plan import step_line
from streamquake.harness.cli.shrink import shrink_plan
from streamquake.harness.experiment.loader import find_experiment, load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.interrupts import Interrupted, interruptible
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.run.text import make_console
from streamquake.reports.shrink.shrink_results import ShrinkFolder, ShrinkResults
from streamquake.reports.shrink.shrink_text import print_shrink
from streamquake.topologies.limits import SEED_LIMIT
from streamquake.topologies.loader import find_topology
from streamquake.topologies.problems import BadInput

UNDISTURBED = "undisturbed"
"""The experiment into which faults are injected where only a topology is given."""
SHOWN_TRIALS = 8
SHRUNK_IF_VIOLATED = (2, 3)
"""A smaller experiment counts if so many of so many runs are violated."""


@click.command("explore")
@click.argument("target", shell_complete=complete_experiment)
@click.option("--for", "time", type=DURATION, metavar="DURATION", help="Use this time, such as 2h.")
@click.option("--trials", type=click.IntRange(min=1), metavar="N", help="End after N trials.")
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_LIMIT),
    help="Seed of the trials; that of an earlier exploration goes on with it.",
)
@click.option(
    "--coverage",
    "known",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="RUNS",
    help="A folder of recorded runs; what they tried counts as tried. May be repeated.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="How often to repeat a violated trial.",
)
@click.option("--keep-going", is_flag=True, help="Go on after a violated trial.")
@click.option(
    "--shrink/--no-shrink",
    "shrinks",
    default=True,
    show_default=True,
    help="Shrink a violated trial whose repeat was violated too.",
)
@click.option("--unguided", is_flag=True, help="Draw each trial at random, to compare.")
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Change one value.")
@click.option("--dry-run", is_flag=True, help="Print the first trials and start nothing.")
@json_option
@out_option
@master_option
def explore_command(
    target: str,
    time: timedelta | None,
    trials: int | None,
    seed: int | None,
    known: Sequence[Path],
    repeats: int,
    keep_going: bool,
    shrinks: bool,
    unguided: bool,
    sets: Sequence[str],
    dry_run: bool,
    as_json: bool,
    out: Path,
    master: str,
) -> int:
    """Run trials of TARGET with faults and settings that are drawn, one after the other.

    TARGET is an experiment, whose job, load and checks each trial has, or a topology, on which
    running totals by key must be exact. Trials are guided to faults, phases, places and settings
    that were not tried, and to behaviour of the system that was not seen before. The first violated
    trial is repeated and shrunk, and ends the exploration. The same command with the same seed goes
    on where it ended. Each trial is a run, which `replay` repeats.

    Exits with 0 when a trial held and none was violated, 1 when one was violated, 2 bad input, 3
    when none was decided, 130 interrupted.
    """
    if time is None and trials is None and not dry_run:
        raise click.UsageError("give --for DURATION or --trials N")
    space = TrialSpace.of(_base(target, sets))
    guidance = Guidance(space, is_guided=not unguided)
    learn_from_runs(guidance, known, lambda line: echo(line, err=True))
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    if dry_run:
        _print_trials(guidance, seed, trials or SHOWN_TRIALS)
        return HELD
    clock = SystemClock()
    runtime = DockerRuntime(clock)
    if found := hindrances(runtime):
        return hindered(found)
    show_message = progress_printer(as_json=as_json)
    show_message(f"seed {seed}")
    limits = ExplorationLimits(
        trials=trials,
        seconds=None if time is None else time.total_seconds(),
        repeats=repeats,
        keeps_going=keep_going,
    )

    def resources() -> SharedResources:
        return SharedResources(
            out=out,
            argv=sys.argv,
            again=shlex.join(["streamquake", *sys.argv[1:]]),
            runtime=runtime,
            clock=clock,
            view=CompactView(show_message),
            show_message=show_message,
            master=master,
        )

    exploration = _explore(guidance, seed, limits, resources())
    shrunk = None
    if shrinks and not exploration.is_interrupted and not keep_going:
        shrunk = _shrink(exploration, resources())
    _print_summary(exploration, shrunk, as_json)
    if exploration.is_interrupted or (shrunk is not None and shrunk.ended == "interrupted"):
        return INTERRUPTED
    return status_of_outcome(exploration.verdict)


def _explore(
    guidance: Guidance, seed: int, limits: ExplorationLimits, resources: SharedResources
) -> Exploration:
    """Run the trials on real clusters; the exploration as far as it got."""
    pool = ClusterPool(resources.show_message)
    pool.next_topology = guidance.space.base.topology

    def run(trial: Experiment) -> RunAttempt:
        return resources.run(trial, pool)

    exploration = Exploration(
        space=guidance.space,
        seed=seed,
        out=resources.out,
        limits=limits,
        run=run,
        elapsed_s=lambda: resources.clock.now_ns() / 1e9,
        show_message=resources.show_message,
        guidance=guidance,
    )
    with resources, interruptible(resources.show_message):
        try:
            with pool:
                exploration.explore()
        except Interrupted:
            exploration.interrupt()
    return exploration


def _shrink(exploration: Exploration, resources: SharedResources) -> ShrinkResults | None:
    """Shrink the last violated trial in the time that is left; None where none failed twice, or
    no time is left."""
    seconds = exploration.limits.seconds
    left_s = None if seconds is None else seconds - exploration.spent_s
    trial = exploration.confirmed
    if trial is None or trial.run is None or (left_s is not None and left_s <= 0):
        return None
    plan = shrink_plan(RunFolder(exploration.out / trial.run), Rule.of(*SHRUNK_IF_VIOLATED))
    resources.show_message(f"shrinking trial {trial.trial}: {plan.failure}")
    return conduct(plan, resources, budget_s=left_s)[0]


def _base(target: str, sets: Sequence[str]) -> Experiment:
    """The experiment of a name or path; of a topology, running totals by key on it."""
    try:
        find_experiment(target)
    except BadInput as no_experiment:
        try:
            find_topology(target)
        except BadInput:
            raise no_experiment from None
        return load_experiment(UNDISTURBED, sets=(f"topology={target}", *sets))
    return load_experiment(target, sets=sets)


def _print_trials(guidance: Guidance, seed: int, count: int) -> None:
    """Print the first trials, as if none showed anything new."""
    for number in range(1, count + 1):
        trial = guidance.next_trial(random.Random(f"{seed}:{number}"))
        job = trial.job
        settings = {} if job is None else {"parallelism": job.parallelism, **job.config}
        echo(f"trial {number}: {', '.join(f'{k}={v}' for k, v in settings.items())}")
        for step in trial.faults:
            echo(f"  {step_line(step)}")


def _print_summary(exploration: Exploration, shrunk: ShrinkResults | None, as_json: bool) -> None:
    trials = exploration.log.first_runs
    outcomes = Counter(trial.outcome for trial in trials)
    if as_json:
        document: dict[str, Any] = {
            "seed": exploration.seed,
            "ended": exploration.ended,
            "verdict": str(exploration.verdict),
            "trials": [trial.model_dump(mode="json") for trial in exploration.log.trials],
            "shrink": None if shrunk is None else shrunk.to_json(),
        }
        echo(json.dumps(document, indent=2))
        return
    table = Table("trial", "runs", "outcome", "why", title="Trials that were not held")
    for trial in trials:
        if trial.outcome != "held":
            runs = [trial, *exploration.log.repeats_of(trial.trial)]
            same = sum(run.outcome == trial.outcome for run in runs)
            table.add_row(
                str(trial.trial),
                Text("\n".join(run.run or "none" for run in runs)),
                f"{trial.outcome} {same} of {len(runs)}",
                Text(trial.why),
            )
    if table.row_count:
        make_console().print(table)
    cells = len({cell for trial in trials for cell in trial.cells})
    new = sum(len(trial.new) for trial in trials)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    echo(f"{exploration.ended}: {len(trials)} trials ({counts or 'none ended'})")
    echo(f"tried {cells} combinations of fault, phase, place and setting; {new} kinds of behaviour")
    for trial in trials:
        if trial.is_violated and trial.run is not None:
            echo(f"repeat it: streamquake replay {exploration.out / trial.run}")
            if shrunk is None:
                echo(f"shrink it: streamquake shrink {exploration.out / trial.run}")
    if shrunk is not None:
        print_shrink(shrunk, ShrinkFolder.of_run(exploration.out, shrunk.run))
    echo(str(exploration.log.path))
