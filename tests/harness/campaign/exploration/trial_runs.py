"""Trials that are not run: a planted rule decides, and the record is written as a run does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from streamquake.harness.campaign.exploration.explorer import Exploration, ExplorationLimits
from streamquake.harness.campaign.exploration.guidance import Guidance
from streamquake.harness.campaign.exploration.trial_drawing import TrialSpace
from streamquake.harness.campaign.shared_resources import RunAttempt
from streamquake.harness.experiment.loader import experiment_document, load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import Ended, FaultRecord, Results
from streamquake.reports.record.run_folder import RunFolder

BASE = load_experiment("undisturbed", seed=1)
SPACE = TrialSpace.of(BASE)
SECONDS = 40.0


def held(trial: Experiment) -> Outcome:
    return Outcome.HELD


@dataclass
class PlannedTrials:
    """Runs trials by a rule: trial -> outcome."""

    out: Path
    outcome_of: Callable[[Experiment], Outcome] = held
    ends: dict[int, Ended] = field(default_factory=dict)
    """Number of a run, from 1 -> how it ends, if it does not complete."""
    errors: dict[int, str] = field(default_factory=dict)
    """Number of a run -> the error that prevents it."""
    acts: bool = True
    """Whether the faults take effect."""
    trials: list[Experiment] = field(default_factory=list)

    def __call__(self, trial: Experiment) -> RunAttempt:
        self.trials.append(trial)
        number = len(self.trials)
        if number in self.errors:
            return RunAttempt(error=self.errors[number], error_kind="internal error")
        outcome = self.outcome_of(trial)
        folder = RunFolder.create(self.out, f"run-{number}-{trial.seed}")
        folder.write_manifest(
            {
                "run_id": folder.run_id,
                "experiment": experiment_document(trial),
                "seed": trial.seed,
            }
        )
        results = Results(
            run_id=folder.run_id,
            experiment=trial.name,
            seed=trial.seed,
            ended=self.ends.get(number, "completed"),
            outcome=outcome,
            checks=(CheckResult(check="exactly_once", outcome=outcome, summary="by rule"),),
            faults=tuple(
                FaultRecord(
                    fault=step.fault,
                    target=step.target,
                    nodes=(),
                    injected_s=1.0,
                    in_effect=self.acts,
                )
                for step in trial.faults
            ),
        )
        folder.write_results(results)
        HistoryWriter(folder.history).close()
        return RunAttempt(results=results)


def exploration(
    run: PlannedTrials,
    *,
    seed: int = 7,
    space: TrialSpace = SPACE,
    show_message: Callable[[str], None] = lambda line: None,
    is_guided: bool = True,
    **limits: object,
) -> Exploration:
    return Exploration(
        space=space,
        seed=seed,
        out=run.out,
        limits=ExplorationLimits(**limits),  # type: ignore[arg-type]
        run=run,
        elapsed_s=lambda: SECONDS,
        show_message=show_message,
        guidance=Guidance(space, is_guided=is_guided),
    )
