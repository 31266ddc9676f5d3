"""Judging: from a run folder alone to its results, at the end of a run or any time later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamquake.harness.experiment.check import (
    ALWAYS_ON,
    Check,
    JudgedRun,
    check_safely,
    checks,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.recorded_plugins import replay_command
from streamquake.harness.interrupts import Interrupted
from streamquake.harness.verdict.evidence.recovery import main_recovery, recoveries_of
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.reports.record.fault_events import (
    FailedFaultEvent,
    FaultCalled,
    FaultEndedEarly,
    FaultHealed,
    FaultInEffect,
    FaultMissedWindow,
    FaultNotHealed,
    FaultNotInEffect,
    FaultNotVerified,
    FaultSkipped,
)
from streamquake.reports.record.history import History, read_so_far
from streamquake.reports.record.metrics import read_metrics
from streamquake.reports.record.outcome import CheckResult, Outcome, worst
from streamquake.reports.record.record_parts import RecordParts
from streamquake.reports.record.results import Ended, FaultRecord, FaultRecovery, Results
from streamquake.reports.record.run_events import NodeRevived
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.errors import ErrorKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILURES: tuple[type[FailedFaultEvent], ...] = (
    FaultNotInEffect,
    FaultMissedWindow,
    FaultSkipped,
    FaultNotHealed,
    FaultNotVerified,
)
NO_METRICS = "no metrics"
"""A file that no run has; it reads as no samples."""


def judge(
    experiment: Experiment,
    folder: RunFolder,
    *,
    run_id: str,
    ended: Ended,
    cause: str = "",
    reason: str = "",
    spark: Callable[[], SparkSession],
    warnings: tuple[str, ...] = (),
    show_message: Callable[[str], None] = lambda line: None,
) -> Results:
    """Run every check over the folder's history and data. Never raises for any content of the
    folder.

    A run that failed or was interrupted before its faults and its drain is judged by what it
    recorded, and never held. The same holds for a record of which a part is missing or damaged.
    `cause` is the kind of error of a failed run.
    """
    parts = RecordParts()
    history, damage = parts.derive(
        "the history", lambda: read_so_far(folder.history), otherwise=(History(), "")
    )
    if damage:
        parts.problems.append(damage)
    # Unreadable samples count as no samples: the history alone is judged.
    metrics = parts.derive(
        "the metrics", lambda: _check_metrics(folder.metrics), otherwise=folder.path / NO_METRICS
    )
    case = JudgedRun(
        experiment=experiment,
        history=history,
        data=folder.data,
        metrics=metrics,
        logs=folder.logs,
        spark=spark,
    )
    results = _run_checks(case, show_message)
    recoveries = parts.derive(
        "the recovery",
        lambda: _recoveries(experiment, history, metrics),
        otherwise=tuple[FaultRecovery, ...](),
    )
    faults = parts.derive(
        "the faults",
        lambda: fault_records(experiment, history),
        otherwise=tuple[FaultRecord, ...](),
    )
    revivals = parts.derive(
        "the restarted nodes", lambda: _revivals(history), otherwise=tuple[str, ...]()
    )
    outcome = worst(result.outcome for result in results)
    whole = ended == "completed" and not parts.problems
    if not whole or len(results) < len(checks_of(experiment)):
        outcome = max(outcome, Outcome.UNDECIDED)
    return Results(
        run_id=run_id,
        experiment=experiment.name,
        seed=experiment.seed,
        ended=ended,
        outcome=outcome,
        expected=experiment.expected,
        cause=_cause(ended, cause, outcome),
        # The reason of a run that was judged before already has the same problems.
        reason="; ".join(filter(None, (reason, *(p for p in parts.problems if p not in reason)))),
        checks=results,
        faults=faults,
        recovery=_main_phases(recoveries),
        recoveries=recoveries,
        replay=replay_command(experiment, folder.path),
        # A run that was judged before already has them.
        warnings=tuple(dict.fromkeys((*warnings, *revivals))),
    )


def _cause(ended: Ended, failure: str, outcome: Outcome) -> str:
    """Why the run has no verdict: its failure, or that nothing was proven."""
    if ended == "failed_to_run":
        return failure
    undecided = ended == "completed" and outcome == Outcome.UNDECIDED
    return ErrorKind.UNDECIDED if undecided else ""


def _run_checks(case: JudgedRun, show_message: Callable[[str], None]) -> tuple[CheckResult, ...]:
    """The result of each check; after an interrupt, of the checks that had finished."""
    results = []
    try:
        for check in checks_of(case.experiment):
            show_message(f"checking {check.title}")
            results.append(check_safely(check, case))
    except Interrupted:
        pass
    return tuple(results)


def _check_metrics(metrics: Path) -> Path:
    """The metrics file, which every run writes. Raises FileNotFoundError, or ValueError for a
    damaged one."""
    if not metrics.exists():
        raise FileNotFoundError(f"{metrics} is missing")
    read_metrics(metrics)
    return metrics


def unjudged_results(experiment: Experiment, folder: RunFolder, *, run_id: str) -> Results:
    """The results of a run without any verdict; its record is complete."""
    return Results(
        run_id=run_id,
        experiment=experiment.name,
        seed=experiment.seed,
        ended="interrupted",
        outcome=Outcome.UNDECIDED,
        expected=experiment.expected,
        faults=fault_records(experiment, read_so_far(folder.history)[0]),
        replay=replay_command(experiment, folder.path),
    )


def interrupted_results(results: Results, folder: RunFolder) -> Results:
    """The results of a run whose user interrupted the checks: a violation stays, and nothing is
    held."""
    return replace(
        results,
        ended="interrupted",
        cause="",
        outcome=max(results.outcome, Outcome.UNDECIDED),
        reason=f"interrupted while judging; judge it with: streamquake check {folder.path}",
    )


def _recoveries(
    experiment: Experiment, history: History, metrics: Path
) -> tuple[FaultRecovery, ...]:
    """The recovery of the job after each fault that acted; none where no job ran."""
    if experiment.job is None:
        return ()
    return tuple(
        FaultRecovery(fault=each.fault, step=each.step, phases=each.to_json())
        for each in recoveries_of(history, metrics, only_files=experiment.only_files)
    )


def _main_phases(recoveries: Sequence[FaultRecovery]) -> Mapping[str, float | None]:
    phases = [each.phases for each in recoveries]
    return phases[main_recovery(phases)] if phases else {}


def _revivals(history: History) -> tuple[str, ...]:
    """Warnings about nodes that ended, or lost their network, without a fault and were started
    again."""

    def what(event: NodeRevived) -> str:
        if event.lost_network:
            return "lost its network"
        return f"ended by itself with exit code {event.exit_code}"

    return tuple(
        f"{event.node} {what(event)} at {event.at_s:.1f} s and was started again"
        for event in history.of(NodeRevived)
    )


def checks_of(experiment: Experiment) -> tuple[Check, ...]:
    """The experiment's checks, preceded by those that are always on."""
    always_on = {name: checks[name]() for name in ALWAYS_ON}
    return tuple({**always_on, **{check.title: check for check in experiment.checks}}.values())


def fault_records(experiment: Experiment, history: History) -> tuple[FaultRecord, ...]:
    """The result of each step of the schedule, from the history."""
    return tuple(_fault_record(experiment, history, n) for n in range(len(experiment.faults)))


def _fault_record(experiment: Experiment, history: History, number: int) -> FaultRecord:
    step = experiment.faults[number]
    attempt = last_attempt(history, number)
    took_effect = attempt.get(FaultInEffect)
    failed = next((attempt[kind] for kind in FAILURES if kind in attempt), None)
    called, ended = attempt.get(FaultCalled), attempt.get(FaultEndedEarly)
    return FaultRecord(
        fault=step.fault,
        target=step.target,
        nodes=tuple(called.nodes or ()) if called else (),
        injected_s=took_effect.seen_ns / 1e9 if took_effect else None,
        in_effect=took_effect is not None,
        evidence=(took_effect.evidence or {}) if took_effect else {},
        healed=FaultHealed in attempt,
        reason=failed.reason if failed else "",
        lateness_ms=took_effect.lateness_ms if took_effect else None,
        missed_window=FaultMissedWindow in attempt,
        ended_early_s=ended.seen_ns / 1e9 if ended else None,
    )
