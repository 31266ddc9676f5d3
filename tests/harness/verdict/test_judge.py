"""Judging a written folder: the complete results, and the record of each step of the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.check import Check, JudgedRun
from streamquake.harness.experiment.model import Experiment, Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.interrupts import Interrupted
from streamquake.harness.verdict import judge as judging
from streamquake.harness.verdict.judge import (
    checks_of,
    fault_records,
    interrupted_results,
    judge,
    unjudged_results,
)
from streamquake.reports.record.event import Action, EventDraft
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import FaultRecord, Results
from streamquake.reports.record.run_folder import RunFolder
from tests.harness.histories import KILLED, Story, experiment, no_spark

WORKER = "flink/taskmanager-1"
ABOUT = {"step": 0, "fault": "kill", "target": "one of flink/taskmanager", "nodes": [WORKER]}


class FixedOutcome(Check):
    """A check with a fixed outcome."""

    name = "fixed_outcome"
    outcome: int = 0

    def check(self, case: JudgedRun) -> CheckResult:
        if self.outcome < 0:
            raise Interrupted("SIGINT")
        outcome = Outcome(self.outcome)
        return CheckResult(check=self.name, outcome=outcome, summary=f"{len(case.history)} events")


def reported() -> Story:
    """A run that killed one worker and restarted another."""
    story = Story().at(1, Action.FAULT_CALLED, **ABOUT)
    seen = {"seen_ns": 2 * 10**9, "evidence": {WORKER: KILLED}, "lateness_ms": 1.5}
    story.at(2.1, Action.FAULT_IN_EFFECT, **ABOUT, **seen)
    story.at(3, Action.NODE_REVIVED, node="kafka/broker-1", exit_code=9)
    return story.at(4, Action.FAULT_HEALED, **ABOUT, seen_ns=4 * 10**9)


def written(out: Path, story: Story) -> RunFolder:
    folder = RunFolder.create(out, "run-1")
    writer = HistoryWriter(folder.history)
    for event in story.history():
        writer.append(
            EventDraft(
                at_ns=event.at_ns,
                process=event.process,
                kind=event.kind,
                action=event.action,
                value=event.value,
            )
        )
    writer.close()
    metrics = Metrics(folder.metrics)
    metrics.add(10**9, "lag", "input", 5)
    metrics.flush()
    return folder


def judged(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, outcomes: Sequence[int], **given: Any
) -> Results:
    """Judge with checks of fixed outcomes; the plan has one kill."""
    monkeypatch.setattr(
        judging, "checks_of", lambda plan: [FixedOutcome(outcome=o) for o in outcomes]
    )
    fields = {"run_id": "run-1", "ended": "completed", "spark": no_spark, **given}
    return judge(experiment(seed=7, expect="violated"), folder, **fields)


def test_the_results_of_a_run_hold_every_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, message = written(tmp_path, reported()), list[str]()
    results = judged(folder, monkeypatch, (0, 2), warnings=("slow",), show_message=message.append)
    assert message == ["checking fixed_outcome", "checking fixed_outcome"]
    assert (results.run_id, results.experiment, results.seed) == ("run-1", "by-hand", 7)
    assert (results.ended, results.outcome, results.reason) == ("completed", Outcome.VIOLATED, "")
    assert results.expected.outcome == Outcome.VIOLATED
    assert results.as_expected
    assert [each.summary for each in results.checks] == ["4 events", "4 events"]
    assert results.replay == f"streamquake replay {folder.path}"
    revived = "kafka/broker-1 ended by itself with exit code 9 at 3.0 s and was started again"
    assert results.warnings == ("slow", revived)
    assert results.faults == (
        FaultRecord(
            fault="kill",
            target="one of flink/taskmanager",
            nodes=(WORKER,),
            injected_s=2.0,
            in_effect=True,
            evidence={WORKER: KILLED},
            healed=True,
            lateness_ms=1.5,
        ),
    )
    assert results.recovery["detected_s"] is None


@pytest.mark.parametrize(
    ("ended", "outcomes", "outcome"),
    [
        ("completed", (0, 0), Outcome.HELD),
        ("completed", (0, 1), Outcome.UNDECIDED),
        ("completed", (), Outcome.UNDECIDED),
        ("failed_to_run", (0, 0), Outcome.UNDECIDED),
        ("interrupted", (0, 0), Outcome.UNDECIDED),
        ("interrupted", (0, 2), Outcome.VIOLATED),
        ("completed", (0, -1), Outcome.UNDECIDED),
        ("completed", (2, -1), Outcome.VIOLATED),
    ],
)
def test_only_a_complete_run_is_held_and_a_violation_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ended: str,
    outcomes: Sequence[int],
    outcome: Outcome,
) -> None:
    results = judged(written(tmp_path, reported()), monkeypatch, outcomes, ended=ended)
    assert (results.ended, results.outcome) == (ended, outcome)
    assert len(results.checks) == sum(each >= 0 for each in outcomes)


@pytest.mark.parametrize(
    ("ended", "outcomes", "failure", "cause"),
    [
        ("completed", (0,), "", ""),
        ("completed", (1,), "", "undecided"),
        ("completed", (0,), "undecided", ""),
        ("failed_to_run", (0,), "image failed", "image failed"),
        ("failed_to_run", (0,), "", ""),
        ("interrupted", (1,), "", ""),
    ],
)
def test_the_cause_is_the_failure_or_that_nothing_was_proven(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ended: str,
    outcomes: Sequence[int],
    failure: str,
    cause: str,
) -> None:
    folder = written(tmp_path, reported())

    assert judged(folder, monkeypatch, outcomes, ended=ended, cause=failure).cause == cause


def test_every_unreadable_part_is_named_and_nothing_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ValueError("no part\n\tat org.apache.spark.Some.call(Some.scala:7)\n")

    for part in ("recoveries_of", "fault_records", "_revivals"):
        monkeypatch.setattr(judging, part, broken)
    results = judged(written(tmp_path, reported()), monkeypatch, (0,), reason="stopped")
    parts = ("the recovery", "the faults", "the restarted nodes")
    problems = [f"{part} cannot be read: no part" for part in parts]
    assert results.reason == "; ".join(["stopped", *problems])
    assert results.outcome == Outcome.UNDECIDED
    assert (results.recovery, results.faults, results.warnings) == ({}, (), ())


def test_a_missing_or_truncated_history_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path, reported())
    with folder.history.open("a") as file:
        file.write("{}\n")
    cut = judged(folder, monkeypatch, (0,))
    assert cut.outcome == Outcome.UNDECIDED
    assert cut.reason.startswith(f"{folder.history}:6: not an event")
    assert [each.summary for each in cut.checks] == ["4 events"], "those before the damage"
    folder.history.unlink()
    missing = judged(folder, monkeypatch, (0,))
    why = f"[Errno 2] No such file or directory: '{folder.history}'"
    assert missing.reason == f"the history cannot be read: {why}"
    assert [each.summary for each in missing.checks] == ["0 events"]
    assert missing.outcome == Outcome.UNDECIDED


def test_a_run_without_a_job_has_no_recovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "checks_of", lambda plan: [FixedOutcome()])
    plan = experiment().model_copy(update={"job": None})
    folder = written(tmp_path, reported())
    results = judge(plan, folder, run_id="run-1", ended="completed", spark=no_spark)
    assert results.recovery == {}
    assert results.faults[0].in_effect


@pytest.mark.parametrize(
    ("output", "first_s"), [({"hdfs": "/output/totals"}, 4.0), ({"kafka": "totals"}, None)]
)
def test_the_recovery_of_a_job_that_writes_files_is_shown_by_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: dict[str, str], first_s: float | None
) -> None:
    monkeypatch.setattr(judging, "checks_of", lambda plan: [FixedOutcome()])
    promise = JobPromise(outputs={"totals": Output.model_validate(output)})
    plan = experiment().model_copy(update={"job": Job(sql="SELECT 1", promise=promise)})
    folder = written(tmp_path, reported().checkpoint(1, 5, 6))
    results = judge(plan, folder, run_id="run-1", ended="completed", spark=no_spark)
    assert results.recovery["first_output_s"] == first_s


def test_checks_get_the_folder_and_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[JudgedRun] = []

    class Looks(FixedOutcome):
        def check(self, case: JudgedRun) -> CheckResult:
            seen.append(case)
            return super().check(case)

    monkeypatch.setattr(judging, "checks_of", lambda plan: [Looks()])
    plan, folder = experiment(), written(tmp_path, reported())
    judge(plan, folder, run_id="run-1", ended="completed", spark=no_spark)
    (case,) = seen
    assert (case.experiment, case.data, case.metrics) == (plan, folder.data, folder.metrics)
    assert case.spark is no_spark


def test_a_run_that_was_not_judged_has_its_faults_and_no_verdict(tmp_path: Path) -> None:
    plan = experiment(seed=7, expect="violated")
    folder = written(tmp_path, reported())
    assert unjudged_results(plan, folder, run_id="run-1") == Results(
        run_id="run-1",
        experiment="by-hand",
        seed=7,
        ended="interrupted",
        outcome=Outcome.UNDECIDED,
        expected=plan.expected,
        faults=fault_records(plan, reported().history()),
        replay=f"streamquake replay {folder.path}",
    )


@pytest.mark.parametrize("outcome", Outcome)
def test_an_interrupted_verdict_holds_nothing_and_hides_no_violation(
    tmp_path: Path, outcome: Outcome
) -> None:
    folder = RunFolder.create(tmp_path, "run-1")
    whole = Results(
        run_id="run-1",
        experiment="e",
        seed=0,
        ended="completed",
        outcome=outcome,
        cause="undecided",
    )
    cut = interrupted_results(whole, folder)
    assert cut.outcome == max(outcome, Outcome.UNDECIDED)
    assert (cut.ended, cut.cause) == ("interrupted", "")
    show_message = f"interrupted while judging; judge it with: streamquake check {folder.path}"
    assert cut.reason == show_message


def record(story: Story, plan: Experiment | None = None) -> FaultRecord:
    (found,) = fault_records(plan or experiment(), story.history())
    return found


def test_a_step_that_was_never_attempted_has_a_record_without_moments() -> None:
    assert record(Story()) == FaultRecord(
        fault="kill", target="one of flink/taskmanager", nodes=(), injected_s=None, in_effect=False
    )
    skipped = record(Story().at(1, Action.FAULT_SKIPPED, step=0, reason="no trigger"))
    assert (skipped.reason, skipped.in_effect, skipped.healed) == ("no trigger", False, False)


def test_a_failed_step_has_its_reason() -> None:
    called = Story().at(1, Action.FAULT_CALLED, **ABOUT)
    idle = record(called.at(2, Action.FAULT_NOT_IN_EFFECT, step=0, reason="still running"))
    assert (idle.nodes, idle.reason, idle.in_effect) == ((WORKER,), "still running", False)
    late = record(reported().at(5, Action.FAULT_MISSED_WINDOW, step=0, reason="too late"))
    assert (late.missed_window, late.reason, late.in_effect) == (True, "too late", True)
    assert not record(reported()).missed_window
    stuck = Story().effect(2).at(3, Action.FAULT_NOT_HEALED, step=0, reason="still paused")
    assert (record(stuck).healed, record(stuck).reason) == (False, "still paused")


def test_a_step_that_ended_early_has_the_moment() -> None:
    ended = reported().at(3, Action.FAULT_ENDED_EARLY, step=0, seen_ns=2_500_000_000, reason="gone")
    assert record(ended).ended_early_s == 2.5
    assert record(reported()).ended_early_s is None


def test_each_step_has_the_record_of_its_own_events() -> None:
    first, second = fault_records(experiment(faults=2), reported().history())
    assert (first.in_effect, second.in_effect) == (True, False)


def test_the_checks_of_an_experiment_follow_those_always_on() -> None:
    plan = experiment(checks=({"recovery": {"within_s": 5}}, {"progress": {"records": 700}}))
    found = checks_of(plan)
    assert [each.name for each in found] == ["progress", "effect", "execution", "recovery"]
    assert found[0].model_dump()["records"] == 700
    assert found[3].model_dump()["within_s"] == 5
