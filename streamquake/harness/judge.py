"""Judging: from a run folder alone to its results, at the end of a run or any time later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamquake.harness.check import Case, Check, check_safely, checks
from streamquake.harness.evidence.recovery import recovery_of
from streamquake.harness.evidence.tries import last_try
from streamquake.harness.experiment import Experiment
from streamquake.reports.event import Action
from streamquake.reports.history import History, read_history
from streamquake.reports.outcome import Outcome, worst
from streamquake.reports.results import Ended, FaultRecord, Results
from streamquake.reports.run_folder import RunFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALWAYS_ON = ("progress", "effect")
FAILURES = (
    Action.FAULT_NOT_IN_EFFECT, Action.FAULT_MISSED_WINDOW, Action.FAULT_SKIPPED,
    Action.FAULT_NOT_HEALED,
)  # fmt: skip


def judge(
    experiment: Experiment, folder: RunFolder, *, run_id: str, ended: Ended, reason: str = "",
    spark: Callable[[], SparkSession], warnings: tuple[str, ...] = (),
    say: Callable[[str], None] = lambda line: None,
) -> Results:  # fmt: skip
    """Run every check over the folder's history and data.

    A run that failed or was interrupted before it was disturbed and drained is judged by what
    there is, but never held.
    """
    history = read_history(folder.history)
    case = Case(
        experiment=experiment,
        history=history,
        data=folder.data,
        metrics=folder.metrics,
        spark=spark,
    )
    results = []
    for check in checks_of(experiment):
        say(f"checking {check.name}")
        results.append(check_safely(check, case))
    outcome = worst(result.outcome for result in results)
    if ended != "completed":
        outcome = max(outcome, Outcome.UNDECIDED)
    recovery = recovery_of(history, folder.metrics, only_files=experiment.only_files)
    return Results(
        run_id=run_id,
        experiment=experiment.name,
        seed=experiment.seed,
        ended=ended,
        outcome=outcome,
        expected=Outcome.parse(experiment.expect),
        reason=reason,
        checks=tuple(results),
        faults=fault_records(experiment, history),
        recovery=recovery.to_json() if recovery and experiment.job else {},
        replay=f"streamquake replay {folder.path}",
        warnings=(*warnings, *_revivals(history)),
    )


def _revivals(history: History) -> tuple[str, ...]:
    """Nodes that ended by themselves: survived, and worth a look."""
    return tuple(
        f"{event.value['node']} ended by itself with exit code {event.value['exit_code']} at "
        f"{event.at_s:.1f} s and was started again"
        for event in history.of(Action.NODE_REVIVED)
    )


def unjudged(experiment: Experiment, folder: RunFolder, *, run_id: str) -> Results:
    """The results of a run that was interrupted while it was judged; its record is whole."""
    return Results(
        run_id=run_id,
        experiment=experiment.name,
        seed=experiment.seed,
        ended="interrupted",
        outcome=Outcome.UNDECIDED,
        expected=Outcome.parse(experiment.expect),
        reason=f"interrupted while judging; judge it with: streamquake check {folder.path}",
        faults=fault_records(experiment, read_history(folder.history)),
        replay=f"streamquake replay {folder.path}",
    )


def checks_of(experiment: Experiment) -> tuple[Check, ...]:
    """The experiment's checks, preceded by those that are always on."""
    named: dict[str, dict[str, Any]] = {name: {} for name in ALWAYS_ON}
    for entry in experiment.checks:
        for name, params in entry.items():
            named[name] = dict(params)
    return tuple(checks[name](**params) for name, params in named.items())


def fault_records(experiment: Experiment, history: History) -> tuple[FaultRecord, ...]:
    """What each step of the schedule did, from the history."""
    return tuple(_fault_record(experiment, history, n) for n in range(len(experiment.faults)))


def _fault_record(experiment: Experiment, history: History, number: int) -> FaultRecord:
    step = experiment.faults[number]
    tried = last_try(history, number)
    bitten = tried.get(Action.FAULT_IN_EFFECT)
    failed = next((tried[action] for action in FAILURES if action in tried), None)
    called = tried.get(Action.FAULT_CALLED)
    return FaultRecord(
        fault=step.fault,
        target=step.target,
        nodes=tuple(called.value["nodes"]) if called else (),
        injected_s=bitten.value["seen_ns"] / 1e9 if bitten else None,
        in_effect=bitten is not None,
        evidence=bitten.value["evidence"] if bitten else {},
        healed=Action.FAULT_HEALED in tried,
        reason=str(failed.value["reason"]) if failed else "",
        lateness_ms=bitten.value.get("lateness_ms") if bitten else None,
        missed_window=Action.FAULT_MISSED_WINDOW in tried,
    )
