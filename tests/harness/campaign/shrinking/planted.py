"""Shrinks without containers: a planted condition decides the outcome of each run."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.harness.campaign.shared_resources import RunAttempt, SharedResources
from streamquake.harness.campaign.shrinking.candidate import Candidate
from streamquake.harness.campaign.shrinking.failure import Failure
from streamquake.harness.campaign.shrinking.shrink_runner import ShrinkPlan, conduct
from streamquake.harness.campaign.shrinking.trials import Rule
from streamquake.harness.campaign.suite.suite_progress import CompactView
from streamquake.harness.experiment.loader import experiment_of_plan
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.cluster_lease import ClusterLeases
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.shrink.shrink_results import ShrinkFolder, ShrinkResults

FAILURE = Failure(check="exactly_once", found="lost")
RUN = "20260101-000000-abcd"
RUN_S = 40.0
"""The duration of each run, in seconds."""
Condition = Callable[[Experiment], bool | None]
"""Whether a run of an experiment fails; None for an undecided one."""


def pauses(*moments: float) -> list[dict[str, Any]]:
    """A schedule of pauses at these moments, by which tests tell them apart."""
    return [
        {"pause": {}, "target": "kafka/broker-1", "at_s": moment, "for_s": 4.0}
        for moment in moments
    ]


def moments(experiment: Experiment) -> set[float | None]:
    """The moments of the steps of an experiment."""
    return {step.when.after_s for step in experiment.faults}


def document(**fields: Any) -> dict[str, Any]:
    """An experiment of which steps, numbers, parameters and settings can be taken away."""
    return {
        "name": "planted",
        "topology": {
            "name": "mine",
            "services": {
                "kafka": {
                    "engine": "kafka",
                    "nodes": {"broker": 3},
                    "config": {"log.retention.ms": 60000, "num.io.threads": 4},
                }
            },
        },
        "workload": {
            "numbered": {"records": 64000, "rate_per_s": 4000, "keys": 32, "payload_bytes": 500}
        },
        "faults": pauses(1.0),
        "checks": ["exactly_once"],
        "seed": 7,
        **fields,
    }


def plan(*, tries: int = 1, of: int = 1, **fields: Any) -> ShrinkPlan:
    """What is to be shrunk: a run of the experiment, with these fields in place of others."""
    experiment = experiment_of_plan(document(**fields), "planted")
    return ShrinkPlan(
        run=RUN,
        experiment=experiment.name,
        start=Candidate.of(experiment),
        failure=FAILURE,
        rule=Rule.of(tries, of),
    )


def flaky(condition: Condition, share: float, seed: int) -> Condition:
    """The condition, which shows only in a share of the runs."""
    rng = random.Random(seed)
    return lambda experiment: condition(experiment) and rng.random() < share


def results_of(run_id: str, experiment: Experiment, fails: bool | None, ended: Ended) -> Results:
    """The results of a run in which records are lost, or not, or in which that is not known."""
    outcome = {None: Outcome.UNDECIDED, False: Outcome.HELD, True: Outcome.VIOLATED}[fails]
    findings = (Finding(what="lost, 3 of them"),) if fails else ()
    check = CheckResult(check="exactly_once", outcome=outcome, summary="judged", findings=findings)
    reason = "stopped by SIGINT" if ended == "interrupted" else ""
    return Results(
        run_id=run_id,
        experiment=experiment.name,
        seed=experiment.seed,
        ended=ended,
        outcome=outcome,
        reason=reason,
        checks=(check,),
    )


@dataclass(frozen=True, kw_only=True)
class PlantedRuns(SharedResources):
    """Runs whose outcome is planted; `before_run` has what happens before the run of a number."""

    condition: Condition
    experiments: list[Experiment] = field(default_factory=list)
    before_run: Mapping[int, Callable[[], Ended]] = field(default_factory=dict)

    def run(
        self, experiment: Experiment, cluster_leases: ClusterLeases | None = None
    ) -> RunAttempt:
        self.experiments.append(experiment)
        self.clock.restart()
        self.clock.sleep(RUN_S)
        number = len(self.experiments)
        ended: Ended = self.before_run[number]() if number in self.before_run else "completed"
        fails = self.condition(experiment) if ended == "completed" else None
        return RunAttempt(results=results_of(f"run-{number:04}", experiment, fails, ended))


class ShrinkTestbed:
    """Shrinks in one folder, and what they wrote on the terminal."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.messages: list[str] = []
        self.runs: list[Experiment] = []
        """The experiments of the last shrink, run by run."""

    def shrink(
        self,
        planned: ShrinkPlan,
        condition: Condition,
        *,
        budget_s: float | None = None,
        before_run: Mapping[int, Callable[[], Ended]] | None = None,
    ) -> tuple[ShrinkResults, ShrinkFolder]:
        clock = FakeClock()
        resources = PlantedRuns(
            out=self.out,
            argv=["streamquake"],
            again=f"streamquake shrink {RUN}",
            runtime=FakeRuntime(clock),
            clock=clock,
            view=CompactView(self.messages.append),
            show_message=self.messages.append,
            condition=condition,
            before_run=before_run or {},
        )
        self.runs = resources.experiments
        return conduct(planned, resources, budget_s=budget_s)
