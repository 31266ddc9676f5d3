"""Full trials an hour on one cluster, compared with a cluster for each; and whether the outcome of
a trial depends on what ran before it.

    python -m tests.benchmarks.bench_trials [TRIALS] [--orders]

A trial is a whole run: submit, steady state, load of 60,000 records, fault, recovery, drained,
outputs reconciled, verdict, clean-up. Each trial has one of ten faults. With `--orders` the trials
run in the given order, in the reversed order, and on a cluster each, and the outcomes of all checks
are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.campaign.clusters.pool import ClusterPool
from streamquake.harness.campaign.shared_resources import SharedResources
from streamquake.harness.campaign.suite.suite_progress import CompactView
from streamquake.harness.experiment.loader import experiment_of
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import read_history
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.yaml_document import Document, frozen

TRIALS = 6
FAULTS: tuple[tuple[str, dict[str, Any], str, float | None], ...] = (
    ("kill", {}, "flink/taskmanager-1", 3),
    ("power_off", {}, "flink/taskmanager-2", 3),
    ("pause", {}, "flink/taskmanager-3", 3),
    ("isolate", {"how": "silent"}, "flink/taskmanager-1", 3),
    ("throw_in_task", {"subtask": 0}, "the node running subtask 0 of copies", 3),
    ("kill", {}, "kafka/broker-1", 3),
    ("slow_link", {"latency_ms": 100}, "link sink", 3),
    ("cpu_limit", {"cpus": 0.1}, "the node running subtask 0 of copies", 3),
    ("kill", {}, "hdfs/datanode-1", 3),
    ("slice_link", {"average_bytes": 100, "variation_bytes": 20}, "link sink", 3),
)
"""Fault, parameters, target, and seconds until the heal."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A trial that has ended."""

    name: str
    results: Results
    wall_s: float
    reused: bool
    phases_s: dict[str, float]
    """Phase -> its duration."""

    @property
    def outcomes(self) -> dict[str, str]:
        """Check -> its outcome."""
        return {check.check: str(check.outcome) for check in self.results.checks}


def experiments(trials: int) -> list[Experiment]:
    """The trials: each fault in turn, with another seed each time."""
    return [_experiment(number) for number in range(trials)]


def _experiment(number: int) -> Experiment:
    name, parameters, target, for_s = FAULTS[number % len(FAULTS)]
    step = {name: parameters, "target": target, "at_s": 4}
    data = {
        "name": f"trial-{number + 1}-{name.replace('_', '-')}",
        "topology": "flink-kafka-hdfs",
        "job": {"sql": "copy.sql", "parallelism": 3},
        "workload": {"numbered": {"records": 60_000, "rate_per_s": 3_000, "keys": 64}},
        "faults": [step if for_s is None else {**step, "for_s": for_s}],
        "checks": ["exactly_once", {"recovery": {"within_s": 60}}],
    }
    return experiment_of(
        Document(file="trial", data=frozen(data)), beside=Path.cwd(), seed=number + 1
    )


def run_trials(planned: Sequence[Experiment], out: Path, *, own_clusters: bool) -> list[Trial]:
    """Run trials one after the other, on one cluster or on one each."""
    clock = SystemClock()
    resources = SharedResources(
        out=out,
        argv=["bench_trials"],
        again="python -m tests.benchmarks.bench_trials",
        runtime=DockerRuntime(clock),
        clock=clock,
        view=CompactView(lambda line: None),
        show_message=_print,
    )
    with resources, ClusterPool(_print) as pool:
        done = []
        for number, experiment in enumerate(planned):
            later = [each.topology for each in planned[number + 1 : number + 2]]
            pool.next_topology = later[0] if later and not own_clusters else None
            began_s = time.monotonic()
            attempt = resources.run(experiment, pool)
            if attempt.results is None:
                raise SystemExit(f"{experiment.name}: {attempt.error}")
            done.append(_trial(experiment, attempt.results, out, time.monotonic() - began_s))
            _print(f"{done[-1].wall_s:6.1f} s  {experiment.name}: {attempt.results.outcome}")
        return done


def _trial(experiment: Experiment, results: Results, out: Path, wall_s: float) -> Trial:
    history = read_history(RunFolder(out / results.run_id).history)
    phases = [(event.value["phase"], event.at_s) for event in history.of(Action.PHASE)]
    ends = [*(at_s for _, at_s in phases[1:]), wall_s]
    return Trial(
        name=experiment.name,
        results=results,
        wall_s=wall_s,
        reused=bool(history.of(Action.CLUSTER_REUSED)),
        phases_s={name: end_s - at_s for (name, at_s), end_s in zip(phases, ends, strict=True)},
    )


def _print(line: str) -> None:
    print(line, flush=True)


def per_hour(trials: Sequence[Trial]) -> float:
    """Trials an hour, the deployment of shared clusters included."""
    return 3600 * len(trials) / sum(trial.wall_s for trial in trials)


def print_phases(arms: dict[str, list[Trial]]) -> None:
    """The median seconds of each phase, and the trials an hour, of each arm."""
    table = Table("median s", *arms)
    names = next(iter(arms.values()))[0].phases_s
    for name in names:
        medians = (
            statistics.median(trial.phases_s.get(name, 0.0) for trial in trials)
            for trials in arms.values()
        )
        shown = "tear down, verdict" if name == "tear down" else name
        table.add_row(shown, *(f"{median:.1f}" for median in medians))
    table.add_row(
        "whole trial",
        *(f"{statistics.median(t.wall_s for t in trials):.1f}" for trials in arms.values()),
    )
    table.add_row("trials an hour", *(f"{per_hour(trials):.0f}" for trials in arms.values()))
    Console().print(table)


def different_outcomes(arms: dict[str, list[Trial]]) -> list[str]:
    """The trials whose checks came out differently in two arms."""
    found = []
    for name in sorted({trial.name for trials in arms.values() for trial in trials}):
        outcomes = {
            arm: trial.outcomes
            for arm, trials in arms.items()
            for trial in trials
            if trial.name == name
        }
        if len({tuple(sorted(each.items())) for each in outcomes.values()}) > 1:
            found.append(f"{name}: {outcomes}")
    return found


def main() -> None:
    """Run the arms and print their figures; status 1 if outcomes differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", type=int, nargs="?", default=TRIALS)
    parser.add_argument("--orders", action="store_true")
    options = parser.parse_args()
    planned = experiments(options.trials)
    with tempfile.TemporaryDirectory() as folder:
        arms = {"one cluster": run_trials(planned, Path(folder), own_clusters=False)}
        if options.orders:
            arms["reversed"] = run_trials(planned[::-1], Path(folder), own_clusters=False)
        own = planned if options.orders else planned[: max(1, len(planned) // 3)]
        arms["a cluster each"] = run_trials(own, Path(folder), own_clusters=True)
    print_phases(arms)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    different = different_outcomes(arms)
    print("\n".join(different) or "the outcomes of all checks are the same in all arms")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
