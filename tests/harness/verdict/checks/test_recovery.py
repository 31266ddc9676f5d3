"""Recovery: its phases, and whether it was in time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.verdict.checks import recovery
from streamquake.harness.verdict.checks.recovery import Recovery
from streamquake.harness.verdict.evidence.recovery import RecoveryPhases as Phases
from streamquake.harness.verdict.evidence.recovery import recoveries_of
from streamquake.reports.record.event import MICRO_BATCH, Action
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story, case, experiment


def killed_and_back() -> Story:
    return (
        Story()
        .checkpoint(1, 5, 6)
        .at(7, Action.OUTPUT_SEEN, output="o", end=5)
        .effect(10)
        .at(11, Action.JOB_FAILING, cause="lost")
        .at(11.5, Action.JOB_RESTARTING, restart=1)
        .at(12, Action.JOB_RESTORED, checkpoint=1)
        .at(14, Action.JOB_RUNNING)
        .at(15, Action.FAULT_HEALED, step=0)
        .checkpoint(2, 13, 15.5)
        .at(16, Action.OUTPUT_SEEN, output="o", end=9)
        .checkpoint(3, 16, 17)
    )


def test_a_recovery_has_its_phases(tmp_path: Path) -> None:
    (phases,) = recoveries_of(killed_and_back().history(), tmp_path / "none", only_files=False)
    assert phases.effect_at_s == 10
    assert phases.detected_s == pytest.approx(1)
    assert phases.restored_s == pytest.approx(2)
    assert phases.restarted_s == pytest.approx(4)
    assert phases.first_output_s == pytest.approx(6)
    assert phases.first_checkpoint_s == pytest.approx(7), "triggered before the restart: no proof"
    assert phases.lag_normal_s is None


def test_the_restore_is_that_of_the_attempt_that_ran(tmp_path: Path) -> None:
    story = (
        killed_and_back()
        .at(17, Action.JOB_FAILING, cause="its node is not there yet")
        .at(18, Action.JOB_RESTORED, checkpoint=1)
        .at(19, Action.JOB_RUNNING)
    )
    (phases,) = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert phases.detected_s == pytest.approx(1)
    assert phases.restored_s == pytest.approx(8)
    assert phases.restarted_s == pytest.approx(9)


def test_a_restore_observed_first_counts_as_detection(tmp_path: Path) -> None:
    story = (
        Story()
        .effect(10)
        .at(11, Action.JOB_RESTORED, checkpoint=1)
        .at(11.5, Action.JOB_FAILING, cause="lost")
        .at(14, Action.JOB_RUNNING)
    )
    (phases,) = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert phases.detected_s == pytest.approx(1)
    assert phases.restored_s == pytest.approx(1)


def test_where_nothing_failed_the_system_resumes_with_the_effect(tmp_path: Path) -> None:
    story = Story().at(9.5, Action.FAULT_CALLED, step=0, fault="pause", target="x").effect(10)
    story.at(10.5, Action.OUTPUT_SEEN, output="o", end=5).checkpoint(1, 9.5, 12)
    story.at(11, Action.JOB_RESTORED, checkpoint=1)
    story.checkpoint(2, 14, 15.5).at(16, Action.OUTPUT_SEEN, output="o", end=9)
    story.checkpoint(3, 16, 17).at(20, Action.FAULT_HEALED, step=0, seen_ns=20 * 10**9)
    (phases,) = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert phases.first_output_s == pytest.approx(6), "committed before the effect, perhaps"
    assert phases.first_checkpoint_s == pytest.approx(5.5), "triggered before the effect: no proof"
    assert phases.restored_s is None, "no failure was detected that it could follow"


def test_a_micro_batch_without_a_restore_begins_after_the_system_resumed(tmp_path: Path) -> None:
    story = Story().effect(10).at(15, Action.FAULT_HEALED, step=0, seen_ns=15 * 10**9)
    for batch, begun_s in ((5, 10.5), (6, 16.0)):
        facts = {"checkpoint": batch, "type": MICRO_BATCH}
        story.at(begun_s, Action.CHECKPOINT_TRIGGERED, **facts)
        story.at(begun_s + 1.5, Action.CHECKPOINT_COMPLETED, **facts)
    (phases,) = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert phases.first_checkpoint_s == pytest.approx(7.5)


def test_lag_is_normal_again_after_its_last_high_sample(tmp_path: Path) -> None:
    path = tmp_path / "metrics.parquet"
    metrics = Metrics(path)
    for at_s, lag in [(1, 10), (5, 20), (9, 15), (11, 500), (12, 18), (13, 90), (14, 12), (15, 9)]:
        metrics.add(at_s * 10**9, "lag", "input", lag)
    metrics.flush()
    (phases,) = recoveries_of(killed_and_back().history(), path, only_files=False)
    assert phases.lag_normal_s == pytest.approx(4)


def test_in_time_is_held_and_late_is_violated(tmp_path: Path) -> None:
    judged = case(killed_and_back(), tmp_path)
    assert Recovery(within_s=8).check(judged).outcome == Outcome.HELD
    late = Recovery(within_s=6.5).check(judged)
    assert late.outcome == Outcome.VIOLATED
    assert late.findings[0].what == "too late"


def test_a_system_that_did_not_recover_is_violated_with_the_reason(tmp_path: Path) -> None:
    story = Story().effect(10).at(12, Action.FAULT_HEALED, step=0)
    story.at(130, Action.NOT_RECOVERED, reason="flink: 2 of 3 TaskManagers")
    result = Recovery().check(case(story, tmp_path))
    assert result.outcome == Outcome.VIOLATED
    assert "2 of 3 TaskManagers" in result.summary


def test_a_system_that_may_not_recover_for_another_reason_is_undecided(tmp_path: Path) -> None:
    """A fault that the harness did not remove, a fault that is not judged, or no fault at all."""

    def outcome(healed_s: float | None, *, fault: str | None = None) -> tuple[Outcome, str]:
        story = acting(acting(flowing(20, 100), 0, "pause", 5, 8), 1, "kill", 20, healed_s)
        story.at(180, Action.NOT_RECOVERED, reason="2 of 3 nodes")
        result = Recovery(fault=fault).check(case(story, tmp_path, 2))
        return result.outcome, result.summary

    prefix = "the system did not recover: 2 of 3 nodes"
    assert outcome(22) == outcome(22, fault="kill") == (Outcome.VIOLATED, prefix)
    not_healed = f"{prefix}; the heal of kill was not verified"
    assert outcome(None) == (Outcome.UNDECIDED, not_healed)
    other = f"{prefix}; the last fault was kill"
    assert outcome(22, fault="pause") == (Outcome.UNDECIDED, other)
    story = flowing(20, 100).at(180, Action.NOT_RECOVERED, reason="2 of 3 nodes")
    result = Recovery().check(case(story, tmp_path))
    none = f"{prefix}; no fault took effect"
    assert (result.outcome, result.summary) == (Outcome.UNDECIDED, none)


@pytest.mark.parametrize(
    ("first_s", "until_s", "healed_s", "outcome"),
    [
        (1, 150, 110, Outcome.HELD),
        (1, 100, 100, Outcome.HELD),  # as in a run that was interrupted
        (55, 150, 20, Outcome.VIOLATED),  # output stopped with the fault
        (55, 150, 110, Outcome.VIOLATED),
        (1, 110, 110, Outcome.VIOLATED),  # output stopped with the heal
    ],
)
def test_output_while_a_fault_without_a_failure_lasts_is_a_recovery(
    tmp_path: Path, first_s: int, until_s: int, healed_s: float, outcome: Outcome
) -> None:
    """Also where the heal comes with the end of the load."""
    story = flowing(9, max(until_s, 150) if outcome == Outcome.VIOLATED else until_s)
    back(acting(story, 0, "slow_link", 10, healed_s), max(first_s, 10), until_s)
    result = Recovery(within_s=30).check(case(story, tmp_path))
    assert result.outcome == outcome, result.summary


def test_a_lasting_fault_without_a_failure_may_be_the_second(tmp_path: Path) -> None:
    story = acting(acting(flowing(200, 200), 0, "kill", 10, 12), 1, "slow_link", 40, 140)
    result = Recovery(within_s=60).check(case(story, tmp_path, 2))
    assert result.outcome == Outcome.HELD, result.summary


@pytest.mark.parametrize(
    ("running_s", "outcome"), [(70, Outcome.VIOLATED), (69, Outcome.UNDECIDED)]
)
def test_a_late_restart_is_too_late_although_nothing_was_sent_any_more(
    tmp_path: Path, running_s: float, outcome: Outcome
) -> None:
    story = acting(flowing(9, 15), 0, "kill", 9.9, 12).at(11, Action.JOB_FAILING, job="j")
    story.at(running_s + 0.5, Action.JOB_RUNNING, job="j").checkpoint(200, 72, 73)
    result = Recovery(within_s=60).check(case(story, tmp_path))
    assert result.outcome == outcome, result.summary
    assert ("running again after 60.5 s" in result.summary) == (outcome == Outcome.VIOLATED)


@pytest.mark.parametrize(
    ("again_s", "fault", "outcome"),
    [
        (61, None, Outcome.UNDECIDED),
        (61, "pause", Outcome.HELD),
        (50, None, Outcome.HELD),
    ],
)
def test_a_fault_without_a_failure_does_not_hide_a_late_recovery(
    tmp_path: Path, again_s: int, fault: str | None, outcome: Outcome
) -> None:
    story = acting(flowing(22, 120), 0, "kill", 22.8, 25).at(24, Action.JOB_FAILING, job="j")
    acting(acting(story, 1, "slow_link", 41.1, 44), 2, "pause", 46, 48)
    back(story.at(again_s, Action.JOB_RUNNING, job="j"), again_s + 1, 120)
    result = Recovery(within_s=30, fault=fault).check(case(story, tmp_path, 3))
    assert result.outcome == outcome, result.summary


def test_a_fault_long_after_a_recovery_does_not_prolong_it(tmp_path: Path) -> None:
    story = acting(flowing(200, 200), 0, "kill", 10, 12).at(11, Action.JOB_FAILING, job="j")
    acting(story.at(14, Action.JOB_RUNNING, job="j"), 1, "pause", 110, 112)
    result = Recovery(within_s=60).check(case(story, tmp_path, 2))
    assert result.outcome == Outcome.HELD, result.summary


def test_without_a_fault_or_without_output_afterwards_it_is_undecided(tmp_path: Path) -> None:
    calm = Story().sent(1, 10)
    silent = Story().effect(10).at(11, Action.FAULT_HEALED, step=0).checkpoint(2, 12, 13)
    for story in (calm, silent):
        assert Recovery().check(case(story, tmp_path)).outcome == Outcome.UNDECIDED


def test_a_fault_without_a_restart_recovers_from_its_heal(tmp_path: Path) -> None:
    story = (
        Story()
        .effect(10)
        .at(20, Action.FAULT_HEALED, step=0)
        .at(21, Action.OUTPUT_SEEN, output="o", end=9)
        .checkpoint(4, 21, 22)
    )
    result = Recovery(within_s=15).check(case(story, tmp_path))
    assert result.outcome == Outcome.HELD
    assert "no restart" in result.summary


def test_a_batch_triggered_before_its_tasks_run_is_the_first_checkpoint(tmp_path: Path) -> None:
    recorded = (
        Story()
        .effect(10)
        .at(11, Action.JOB_RESTARTING)
        .at(12, Action.JOB_RESTORED, checkpoint=4)
        .at(13, Action.CHECKPOINT_TRIGGERED, checkpoint=5, type=MICRO_BATCH)
        .at(14, Action.JOB_RUNNING)
        .at(16, Action.OUTPUT_SEEN, output="a")
        .at(17, Action.CHECKPOINT_COMPLETED, checkpoint=5)
    )
    result = Recovery(within_s=60).check(case(recorded, tmp_path))
    assert result.outcome == Outcome.HELD
    assert result.counts["first_checkpoint_s"] == 7.0


def test_a_lost_executor_counts_as_detected(tmp_path: Path) -> None:
    recorded = (
        Story()
        .effect(10)
        .at(11, Action.EXECUTOR_LOST, node="spark/worker-1")
        .at(12, Action.JOB_RUNNING)
        .checkpoint(5, 13, 14)
        .at(15, Action.OUTPUT_SEEN, output="a")
    )
    assert Recovery(within_s=60).check(case(recorded, tmp_path)).counts["detected_s"] == 1.0


def test_a_failure_reported_before_the_verified_effect_is_detected_at_zero(
    tmp_path: Path,
) -> None:
    """A closed connection reports a killed worker to the master before the harness verifies the
    effect."""
    recorded = (
        Story()
        .at(8, Action.EXECUTOR_LOST, node="spark/worker-2")
        .at(9.9, Action.EXECUTOR_LOST, node="spark/worker-1")
        .at(9.95, Action.JOB_RUNNING)
        .at(10, Action.FAULT_IN_EFFECT, step=0, called_ns=int(9.7e9), seen_ns=10**10, evidence={})
        .at(12, Action.OUTPUT_SEEN, output="a")
        .checkpoint(5, 13, 14)
    )
    counts = Recovery(within_s=60).check(case(recorded, tmp_path)).counts
    phases = {name: counts[name] for name in ("detected_s", "restarted_s", "first_output_s")}
    assert phases == {"detected_s": 0.0, "restarted_s": 0.0, "first_output_s": 2.0}


@pytest.mark.parametrize(
    ("rows", "within_s", "outcome"),
    [
        (7, 60, Outcome.HELD),
        (7, 6, Outcome.VIOLATED),
        (0, 60, Outcome.UNDECIDED),
        (None, 60, Outcome.UNDECIDED),
    ],
)
def test_file_output_counts_from_the_commit_of_its_records(
    tmp_path: Path, rows: int | None, within_s: float, outcome: Outcome
) -> None:
    """Folders are not polled. A batch without rows writes no file."""
    recorded = Story().effect(10)
    recorded.at(11, Action.JOB_RESTARTING).at(13, Action.JOB_RESTORED, checkpoint=3)
    recorded.at(14, Action.JOB_RUNNING)
    for batch, read in ((4, 0), (5, rows)):
        facts = {"checkpoint": batch, "type": MICRO_BATCH, "input_rows": read}
        recorded.at(5.5 + 2 * batch, Action.CHECKPOINT_TRIGGERED, **facts)
        recorded.at(7 + 2 * batch, Action.CHECKPOINT_COMPLETED, **facts)
    files = JobPromise(outputs={"totals": Output(hdfs="/output/totals")})
    plan = experiment().model_copy(update={"job": Job(sql="SELECT 1", promise=files)})

    result = Recovery(within_s=within_s).check(replace(case(recorded, tmp_path), experiment=plan))

    assert result.outcome == outcome, result.summary
    assert result.counts["first_checkpoint_s"] == 5.0
    assert result.counts["first_output_s"] == (7.0 if rows else None)


def kill_at(story: Story, at_s: float, step: int, back_s: float | None) -> Story:
    """A kill, and the recovery of the job so many seconds later, or never."""
    story.at(at_s, Action.FAULT_CALLED, step=step, fault="kill", target="x")
    story.effect(at_s, step).at(at_s + 1, Action.JOB_RESTARTING, restart=step)
    story.at(at_s + 2, Action.FAULT_HEALED, step=step)
    if back_s is not None:
        story.at(at_s + back_s - 1, Action.JOB_RUNNING)
        story.checkpoint(10 + step, at_s + back_s - 1, at_s + back_s)
        story.at(at_s + back_s, Action.OUTPUT_SEEN, output="o", end=5)
    return story


def test_two_kills_are_two_recoveries(tmp_path: Path) -> None:
    story = kill_at(kill_at(Story(), 10, 0, 4), 110, 1, 4)
    result = Recovery(within_s=8).check(case(story, tmp_path, faults=2))
    assert result.outcome == Outcome.HELD
    assert (result.counts["faults"], result.counts["longest_s"]) == (2, 4)


def test_a_late_second_recovery_is_violated_and_named(tmp_path: Path) -> None:
    story = kill_at(kill_at(Story(), 10, 0, 4), 110, 1, 290)
    result = Recovery(within_s=30).check(case(story, tmp_path, faults=2))
    assert result.outcome == Outcome.VIOLATED
    assert [finding.where for finding in result.findings] == ["kill (faults[1])"]


@pytest.mark.parametrize(("end_s", "outcome"), [(200, Outcome.VIOLATED), (120, Outcome.UNDECIDED)])
def test_a_heal_is_no_recovery_of_a_job_that_never_runs_again(
    tmp_path: Path, end_s: float, outcome: Outcome
) -> None:
    """Output of the tasks that survived, and a heal, are no recovery."""
    story = kill_at(kill_at(Story(), 10, 0, 4), 110, 1, None)
    story.at(115, Action.OUTPUT_SEEN, output="o", end=9).at(end_s, Action.DRAINED)
    result = Recovery(within_s=30).check(case(story, tmp_path, faults=2))
    assert result.outcome == outcome
    assert "the job failed and was not seen to run again" in result.summary


def test_no_output_while_records_are_sent_is_violated_beyond_the_limit(tmp_path: Path) -> None:
    def silent(sent_s: float) -> Outcome:
        story = Story().effect(10).at(12, Action.FAULT_HEALED, step=0).checkpoint(2, 13, 14)
        return Recovery(within_s=30).check(case(story.sent(sent_s, 9), tmp_path)).outcome

    assert silent(100) == Outcome.VIOLATED
    assert silent(30) == Outcome.UNDECIDED


def test_a_recovery_cut_off_by_the_next_fault_is_judged_by_the_next(tmp_path: Path) -> None:
    story = kill_at(kill_at(Story(), 10, 0, None), 15, 1, 6)
    result = Recovery(within_s=8).check(case(story, tmp_path, faults=2))
    assert result.outcome == Outcome.HELD
    assert "not seen to run again before the next fault" in result.summary
    late = kill_at(kill_at(Story(), 10, 0, None), 19, 1, 6)
    assert Recovery(within_s=8).check(case(late, tmp_path, faults=2)).outcome == Outcome.VIOLATED


def test_faults_that_act_at_the_same_time_overlap(tmp_path: Path) -> None:
    slow = {"step": 0, "fault": "slow_link", "target": "link sink"}
    story = Story().at(5, Action.FAULT_CALLED, **slow).effect(5)
    story = kill_at(story, 20, 1, 4).at(60, Action.FAULT_HEALED, **slow)
    story.checkpoint(30, 61, 62).at(62, Action.OUTPUT_SEEN, output="o", end=9)
    result = Recovery(within_s=20).check(case(story, tmp_path, faults=2))
    assert result.outcome == Outcome.HELD
    assert "overlaps slow_link" in result.summary
    assert "heal of slow_link (faults[0]): no restart: output after 2.0 s" in result.summary


def test_a_limit_may_name_its_fault(tmp_path: Path) -> None:
    slow = {"step": 0, "fault": "slow_link", "target": "link sink"}
    story = Story().at(5, Action.FAULT_CALLED, **slow).effect(5).at(6, Action.FAULT_HEALED, **slow)
    story = kill_at(story.checkpoint(1, 15, 16).at(17, Action.OUTPUT_SEEN, end=1), 110, 1, 4)
    judged = case(story, tmp_path, faults=2)
    assert Recovery(within_s=8).check(judged).outcome == Outcome.VIOLATED
    assert Recovery(within_s=8, fault="kill").check(judged).outcome == Outcome.HELD
    absent = Recovery(within_s=8, fault="pause").check(judged)
    assert absent.outcome == Outcome.UNDECIDED


def test_a_recovery_exactly_at_its_limit_is_in_time(tmp_path: Path) -> None:
    judged = case(killed_and_back(), tmp_path)
    result = Recovery(within_s=7).check(judged)
    assert (result.outcome, result.counts["longest_s"]) == (Outcome.HELD, 7.0)


def test_a_limit_for_one_fault_applies_to_each_of_its_recoveries(tmp_path: Path) -> None:
    """A cut-off recovery of a named fault is not judged by the next recovery."""
    story = kill_at(kill_at(Story(), 10, 0, None), 15, 1, 6)
    judged = case(story, tmp_path, faults=2)
    assert Recovery(within_s=8).check(judged).outcome == Outcome.HELD
    named = Recovery(within_s=8, fault="kill").check(judged)
    assert named.outcome == Outcome.UNDECIDED
    message = "the job failed and was not seen to run again before the next fault"
    assert named.summary == f"kill (faults[0]): {message}"


def without_checkpoints(story: Story, folder: Path) -> CheckResult:
    judged = case(story, folder)
    config = Job(sql="SELECT 1", config={})
    plan = judged.experiment.model_copy(update={"job": config})
    assert not plan.checkpointed
    return Recovery(within_s=30).check(replace(judged, experiment=plan))


def back_without_checkpoint(end_s: float) -> Story:
    story = Story().effect(10).at(11, Action.JOB_RESTARTING).at(12, Action.JOB_RUNNING)
    return story.at(12.5, Action.OUTPUT_SEEN, output="o", end=1).at(end_s, Action.DRAINED)


@pytest.mark.parametrize(("end_s", "outcome"), [(30, Outcome.UNDECIDED), (50, Outcome.VIOLATED)])
def test_a_job_with_checkpoints_has_recovered_with_the_first_one(
    tmp_path: Path, end_s: float, outcome: Outcome
) -> None:
    result = Recovery(within_s=30).check(case(back_without_checkpoint(end_s), tmp_path))
    assert result.outcome == outcome
    assert result.counts["longest_s"] == end_s - 10
    assert "no checkpoint was seen to complete after the system resumed" in result.summary
    plain = without_checkpoints(back_without_checkpoint(end_s), tmp_path)
    assert (plain.outcome, plain.counts["longest_s"]) == (Outcome.HELD, 2.5)


def test_a_job_without_checkpoints_has_recovered_once_output_continues(tmp_path: Path) -> None:
    story = Story().effect(10).at(10.2, Action.FAULT_HEALED, step=0)
    result = without_checkpoints(story.at(10.25, Action.OUTPUT_SEEN, end=1), tmp_path)
    assert (result.outcome, result.counts["longest_s"]) == (Outcome.HELD, 0.25)


def test_the_longest_recovery_is_rounded_to_milliseconds(tmp_path: Path) -> None:
    story = Story().effect(10).at(10.2, Action.FAULT_HEALED, step=0)
    result = without_checkpoints(story.at(11.23456, Action.OUTPUT_SEEN, end=1), tmp_path)
    assert result.counts["longest_s"] == 1.235
    assert result.counts["first_output_s"] == 1.235


def test_all_overlapping_faults_are_named(tmp_path: Path) -> None:
    story = Story()
    for step, name in enumerate(("slow_link", "cut")):
        about = {"step": step, "fault": name, "target": "link sink"}
        story.at(5, Action.FAULT_CALLED, **about).effect(5 + step, step)
    result = Recovery(within_s=60).check(case(kill_at(story, 20, 2, 4), tmp_path, faults=3))
    assert "overlaps slow_link, cut" in result.summary


def test_the_return_to_normal_lag_is_reported(tmp_path: Path) -> None:
    judged = case(killed_and_back(), tmp_path)
    metrics = Metrics(judged.metrics)
    for at_s, lag in [(1, 10), (11, 500), (13, 9)]:
        metrics.add(at_s * 10**9, "lag", "input", lag)
    metrics.flush()
    assert ", lag normal after 3.0 s; 7.0 s in all, 8 s allowed" in (
        Recovery(within_s=8).check(judged).summary
    )


def test_without_a_heal_commits_of_files_prove_no_recovery(tmp_path: Path) -> None:
    judged = case(acting(flowing(60, 60), 0, "kill", 10, None), tmp_path)
    files = JobPromise(outputs={"totals": Output(hdfs="/output/totals")})
    job = Job(sql="SELECT 1", promise=files)
    plan = judged.experiment.model_copy(update={"job": job})
    result = Recovery(within_s=30).check(replace(judged, experiment=plan))
    assert result.outcome == Outcome.UNDECIDED
    assert "the heal of the fault was not verified" in result.summary


def test_output_alone_is_no_recovery_of_the_job(tmp_path: Path) -> None:
    """Records written before a failure may be committed after it; a checkpoint proves that the job
    runs."""
    story = acting(flowing(70, 70), 0, "kill", 10, 12).at(70.5, Action.JOB_FAILING, job="a")
    story.at(70.6, Action.OUTPUT_SEEN, output="o", end=99, grown=5)
    assert Recovery(within_s=55).check(case(story, tmp_path)).outcome == Outcome.UNDECIDED
    story.checkpoint(99, 71, 72)
    assert Recovery(within_s=55).check(case(story, tmp_path)).outcome == Outcome.HELD


def flowing(until_s: float, sent_s: float, *outputs: str) -> Story:
    """A job that commits every output with a checkpoint once a second, while records are sent."""
    story = Story()
    for second in range(1, int(sent_s) + 1):
        story.sent(second, 10)
        if second <= until_s:
            story.checkpoint(second, second, second + 0.1)
            for output in outputs or ("o",):
                story.at(second + 0.2, Action.OUTPUT_SEEN, output=output, end=second, grown=1)
    return story


def acting(story: Story, step: int, fault: str, at_s: float, healed_s: float | None) -> Story:
    """A fault from its call to its heal; None without a verified heal."""
    about = {"step": step, "fault": fault, "target": "x", "nodes": [f"{fault}-1"]}
    story.at(at_s, Action.FAULT_CALLED, **about)
    story.at(at_s + 0.1, Action.FAULT_IN_EFFECT, **about, seen_ns=int((at_s + 0.1) * 1e9))
    if healed_s is not None:
        story.at(healed_s, Action.FAULT_HEALED, **about, seen_ns=int(healed_s * 1e9))
    return story


@pytest.mark.parametrize(
    ("until_s", "sent_s", "outcome"),
    [(100, 100, Outcome.HELD), (40, 90, Outcome.UNDECIDED), (40, 120, Outcome.VIOLATED)],
)
def test_the_recovery_from_the_last_heal_of_overlapping_faults_counts(
    tmp_path: Path, until_s: float, sent_s: float, outcome: Outcome
) -> None:
    story = acting(flowing(until_s, sent_s), 0, "isolate", 10, 80)
    result = Recovery(within_s=30).check(case(acting(story, 1, "kill", 20, 22), tmp_path, 2))
    assert result.outcome == outcome, result.summary
    assert "heal of isolate (faults[0])" in result.summary


def test_a_heal_after_the_load_only_needs_a_drained_run(tmp_path: Path) -> None:
    story = acting(acting(flowing(40, 40), 0, "isolate", 10, 80), 1, "kill", 20, 22)
    undrained = Recovery(within_s=30).check(case(story, tmp_path, 2))
    assert undrained.outcome == Outcome.UNDECIDED
    story.sent(80.9, 9).at(90, Action.DRAINED)  # perhaps sent before the heal
    drained = Recovery(within_s=30).check(case(story, tmp_path, 2))
    assert drained.outcome == Outcome.HELD
    sent = Recovery(within_s=30).check(case(story.sent(81.1, 9), tmp_path, 2))
    assert sent.outcome == Outcome.UNDECIDED


def test_an_overlap_cut_off_by_the_next_fault_is_judged_by_that_fault(tmp_path: Path) -> None:
    story = acting(acting(flowing(100, 100), 0, "isolate", 10, 80), 1, "kill", 20, 22)
    result = Recovery(within_s=30).check(case(acting(story, 2, "kill", 80.1, 82), tmp_path, 3))
    assert result.outcome == Outcome.HELD
    assert "before the next fault" in result.summary


@pytest.mark.parametrize(
    ("heal_s", "until_s", "outcome"),
    [(12, 60, Outcome.HELD), (None, 60, Outcome.UNDECIDED), (None, 9, Outcome.VIOLATED)],
)
def test_without_a_verified_heal_output_proves_no_recovery(
    tmp_path: Path, heal_s: float | None, until_s: float, outcome: Outcome
) -> None:
    """Without any output the recovery is late, whenever the fault was healed."""
    result = Recovery(within_s=30).check(
        case(acting(flowing(until_s, 60), 0, "kill", 10, heal_s), tmp_path)
    )
    assert result.outcome == outcome, result.summary


@pytest.mark.parametrize(
    ("quiet_s", "back_s", "outcome"),
    [
        (60, 71, Outcome.HELD),
        (60, None, Outcome.UNDECIDED),
        (20, 71, Outcome.VIOLATED),
    ],
)
def test_a_failure_long_after_the_recovery_is_not_part_of_it(
    tmp_path: Path, quiet_s: float, back_s: float | None, outcome: Outcome
) -> None:
    """A failure soon after the heal may be a late effect of the fault."""
    story = acting(flowing(70, 70), 0, "kill", 10, 72 - quiet_s)
    story.at(70.5, Action.JOB_RESTARTING, job="a", restart=1)
    if back_s is not None:
        story.at(back_s, Action.JOB_RUNNING, job="a").checkpoint(80, 72, 73)
        story.at(73, Action.OUTPUT_SEEN, output="o", end=99, grown=5)
    result = Recovery(within_s=55).check(case(story.sent(75, 9), tmp_path))
    assert result.outcome == outcome, result.summary


@pytest.mark.parametrize(
    ("job", "submitted", "outcome"),
    [("a", False, Outcome.HELD), ("b", False, Outcome.VIOLATED), ("b", True, Outcome.HELD)],
)
def test_a_job_has_recovered_when_it_or_its_replacement_runs(
    tmp_path: Path, job: str, submitted: bool, outcome: Outcome
) -> None:
    story = acting(flowing(60, 60), 0, "kill", 10, 12)
    story.at(11, Action.JOB_FAILING, job="a", cause="lost")
    if submitted:
        story.at(12, Action.JOB_SUBMITTED, job=job)
    result = Recovery(within_s=30).check(case(story.at(13, Action.JOB_RUNNING, job=job), tmp_path))
    assert result.outcome == outcome, result.summary


@pytest.mark.parametrize(
    ("job", "kind", "triggered_s", "fault", "outcome"),
    [
        ("a", "CHECKPOINT", 14, "kill", Outcome.UNDECIDED),
        ("b", "CHECKPOINT", 14, "kill", Outcome.VIOLATED),
        ("a", MICRO_BATCH, 14, "kill", Outcome.VIOLATED),
        ("a", "CHECKPOINT", 10.5, "kill", Outcome.VIOLATED),  # before the failure
        ("a", "CHECKPOINT", 14, "clock_skew", Outcome.VIOLATED),  # the stamps prove nothing
    ],
)
def test_a_checkpoint_shows_that_a_job_ran_again_although_its_tasks_were_not_seen_to(
    job: str, kind: str, triggered_s: float, fault: str, outcome: Outcome, tmp_path: Path
) -> None:
    story = acting(flowing(60, 60), 0, fault, 10, 12)
    story.at(11, Action.JOB_FAILING, job="a", cause="lost", failed_ms=111_000)
    about = {"job": job, "checkpoint": 900, "type": kind, "trigger_ms": 100_000 + triggered_s * 1e3}
    story.at(15, Action.CHECKPOINT_TRIGGERED, **about)
    story.at(15.1, Action.CHECKPOINT_COMPLETED, **about, duration_ms=50)
    result = Recovery(within_s=30).check(case(story, tmp_path))
    assert result.outcome == outcome, result.summary
    if outcome == Outcome.UNDECIDED:
        assert result.summary == (
            "the job failed and was not seen to run again, but checkpoint 900, triggered after "
            "it, completed"
        )


@pytest.mark.parametrize(
    ("state", "runs", "outcome"),
    [
        ("FAILED", (), Outcome.VIOLATED),
        ("FAILED", ("b",), Outcome.HELD),
        ("FAILED", ("a",), Outcome.UNDECIDED),
        ("FINISHED", (), Outcome.HELD),
    ],
)
def test_a_job_that_failed_for_good_recovers_only_with_a_replacement(
    tmp_path: Path, state: str, runs: tuple[str, ...], outcome: Outcome
) -> None:
    """A job recorded as running after its own end contradicts the record."""
    story = acting(flowing(60, 60), 0, "kill", 10, 12)
    story.at(11, Action.JOB_ENDED, job="a", state=state, cause="")
    for job in runs:
        story.at(12, Action.JOB_SUBMITTED, job=job).at(13, Action.JOB_RUNNING, job=job)
    result = Recovery(within_s=30).check(case(story, tmp_path))
    assert result.outcome == outcome, result.summary


def test_a_savepoint_is_no_checkpoint(tmp_path: Path) -> None:
    def back(kind: str) -> Outcome:
        story = acting(Story().sent(1, 9), 0, "kill", 10, 12)
        story.at(14, Action.CHECKPOINT_TRIGGERED, checkpoint=7, type=kind)
        story.at(15, Action.CHECKPOINT_COMPLETED, checkpoint=7, type=kind)
        story.at(15, Action.OUTPUT_SEEN, output="o", end=5, grown=5).at(30, Action.DRAINED)
        return Recovery(within_s=30).check(case(story, tmp_path)).outcome

    assert back("CHECKPOINT") == Outcome.HELD
    assert back("SAVEPOINT") == Outcome.UNDECIDED


def test_an_output_that_did_not_grow_is_no_output(tmp_path: Path) -> None:
    def back(grown: int) -> Outcome:
        story = acting(Story().sent(1, 9), 0, "kill", 10, 12).checkpoint(2, 13, 14)
        story.at(15, Action.OUTPUT_SEEN, output="o", end=5, grown=grown)
        return Recovery(within_s=30).check(case(story, tmp_path)).outcome

    assert back(1) == Outcome.HELD
    assert back(0) == Outcome.UNDECIDED


def one_stops(until_s: float, target: str = "x") -> Story:
    """Two outputs; one stops growing at a moment."""
    story = flowing(60, 60)
    for second in range(1, int(until_s) + 1):
        story.at(second + 0.3, Action.OUTPUT_SEEN, output="other", end=second, grown=1)
    about = {"step": 0, "fault": "kill", "target": target}
    story.at(10.5, Action.FAULT_CALLED, **about).effect(10.6)
    return story.at(12, Action.FAULT_HEALED, **about)


@pytest.mark.parametrize(
    ("story", "outcome"),
    [
        (one_stops(60), Outcome.HELD),
        (one_stops(10), Outcome.UNDECIDED),
        (one_stops(6), Outcome.HELD),  # it had stopped before the fault
        (one_stops(3), Outcome.HELD),  # it never grew often
        (one_stops(10, "the workload"), Outcome.HELD),  # the data was changed
    ],
)
def test_an_output_that_never_resumes_is_undecided(
    tmp_path: Path, story: Story, outcome: Outcome
) -> None:
    result = Recovery(within_s=30).check(case(story, tmp_path))
    assert result.outcome == outcome, result.summary
    assert ("other" in result.summary) == (outcome == Outcome.UNDECIDED)


def test_an_output_silent_since_an_earlier_fault_is_undecided(tmp_path: Path) -> None:
    """The next fault changes nothing; growth after it would show that the output is not silent."""
    story = acting(one_stops(10), 1, "pause", 40, 42)
    silent = Recovery(within_s=30).check(case(story, tmp_path, 2))
    assert (silent.outcome, silent.summary) == (
        Outcome.UNDECIDED,
        "kill (faults[0]): no further output was seen of other",
    )
    story.at(50, Action.OUTPUT_SEEN, output="other", end=50, grown=1)
    back = Recovery(within_s=30).check(case(story, tmp_path, 2))
    assert back.outcome == Outcome.HELD, back.summary


def back_before_the_heal(story: Story, step: int = 0) -> Story:
    """A fault with a failure; the job recovered with output long before the heal at 50 s."""
    story = acting(story, step, "isolate", 10, 50).at(12, Action.JOB_FAILING, job="a", cause="lost")
    return story.at(14, Action.JOB_RUNNING, job="a").at(139, Action.DRAINED)


@pytest.mark.parametrize(
    ("until_s", "sent_s", "outcome"),
    [
        (120, 120, Outcome.HELD),
        (49, 120, Outcome.VIOLATED),
        (49, 75, Outcome.UNDECIDED),  # not for as long as the limit, but longer than its pauses
        (49, 49, Outcome.HELD),
        (52, 52, Outcome.HELD),
    ],
)
@pytest.mark.parametrize("faults", [1, 2])
def test_a_system_that_recovered_before_the_heal_must_continue_after_it(
    tmp_path: Path, faults: int, until_s: float, sent_s: float, outcome: Outcome
) -> None:
    """This also applies if another fault acted at the same time."""
    story = flowing(until_s, sent_s)
    if faults == 2:
        acting(story, 0, "kill", 9, 11)
    story = back_before_the_heal(story, faults - 1)
    result = Recovery(within_s=30).check(case(story, tmp_path, faults))
    assert result.outcome == outcome, result.summary
    assert ("heal of isolate" in result.summary) == (outcome == Outcome.VIOLATED)


def test_a_last_fault_healed_after_the_load_only_needs_a_drained_run(
    tmp_path: Path,
) -> None:
    """For a single fault this is no evidence of a recovery."""
    story = acting(acting(flowing(20, 40), 0, "kill", 10, 12), 1, "slow_link", 20, 45)
    undrained = Recovery(within_s=30).check(case(story, tmp_path, 2))
    assert undrained.outcome == Outcome.UNDECIDED
    drained = Recovery(within_s=30).check(case(story.at(50, Action.DRAINED), tmp_path, 2))
    assert drained.outcome == Outcome.HELD, drained.summary
    assert "slow_link (faults[1]): nothing was sent after its heal" in drained.summary
    sent = Recovery(within_s=30).check(case(story.sent(46.1, 9), tmp_path, 2))
    assert sent.outcome == Outcome.UNDECIDED
    single = acting(flowing(20, 40), 0, "slow_link", 20, 45).at(50, Action.DRAINED)
    assert Recovery(within_s=30).check(case(single, tmp_path)).outcome == Outcome.UNDECIDED


def test_records_sent_for_exactly_the_limit_are_not_missed(tmp_path: Path) -> None:
    """The last record is sent 20 s after the effect."""
    story = acting(acting(flowing(20, 40), 0, "kill", 10, 12), 1, "slow_link", 19.9, 45)
    drained = Recovery(within_s=20).check(case(story.at(50, Action.DRAINED), tmp_path, 2))
    assert drained.outcome == Outcome.HELD, drained.summary
    assert "slow_link (faults[1]): nothing was sent after its heal" in drained.summary


@pytest.mark.parametrize(
    ("again_s", "effect_s", "outcome"),
    [(44, 45, Outcome.UNDECIDED), (44, 21, Outcome.VIOLATED), (15, 45, Outcome.HELD)],
)
def test_a_failure_must_be_over_in_time_before_the_next_fault_takes_effect(
    tmp_path: Path, again_s: float, effect_s: float, outcome: Outcome
) -> None:
    """The second fault counts from its effect; if it was called before the first, there is no
    interval between them."""
    slow = {"step": 1, "fault": "slow_link", "target": "x", "nodes": ["y"]}
    story = flowing(9, 100).at(9.9, Action.FAULT_CALLED, **slow)
    acting(story, 0, "kill", 10, 20).at(11, Action.JOB_FAILING, job="j", cause="lost")
    back(story.at(again_s, Action.JOB_RUNNING, job="j"), round(again_s) + 1, 100)
    story.at(effect_s, Action.FAULT_IN_EFFECT, **slow, seen_ns=int(effect_s * 1e9))
    story.at(50, Action.FAULT_HEALED, **slow, seen_ns=50 * 10**9)

    result = Recovery(within_s=20).check(case(story, tmp_path, 2))
    assert result.outcome == outcome, result.summary
    message = "kill (faults[0]): the job failed and had not recovered 34.9 s after it"
    assert outcome != Outcome.UNDECIDED or result.summary.startswith(message)


@pytest.mark.parametrize(
    ("again_s", "outcome"),
    [(18, Outcome.HELD), (50, Outcome.VIOLATED), (None, Outcome.UNDECIDED)],
)
def test_a_job_that_failed_before_the_fault_has_recovered_when_it_runs_again(
    tmp_path: Path, again_s: float | None, outcome: Outcome
) -> None:
    """Output in the meantime comes from tasks that survived; without checkpoints it is the only
    evidence."""
    story = acting(flowing(9, 90), 0, "kill", 10, 14).at(11, Action.JOB_FAILING, job="j", cause="x")
    acting(story, 1, "kill", 15, 17)
    for second in range(16, 90):
        story.at(second + 0.2, Action.OUTPUT_SEEN, output="o", end=second, grown=1)
    if again_s is not None:
        story.at(again_s, Action.JOB_RUNNING, job="j")

    judged = case(story, tmp_path, 2)
    plain = judged.experiment.model_copy(update={"job": Job(sql="SELECT 1")})
    result = Recovery(within_s=20).check(replace(judged, experiment=plain))
    assert result.outcome == outcome, result.summary


def test_a_batch_may_begin_before_the_job_recovers_from_an_earlier_failure(
    tmp_path: Path,
) -> None:
    batch = {"checkpoint": 20, "type": MICRO_BATCH}
    story = acting(flowing(9, 60), 0, "kill", 10, 12).at(11, Action.JOB_FAILING, job="j", cause="x")
    acting(story, 1, "kill", 13, 14).at(15, Action.JOB_RESTORED, job="j", checkpoint=9)
    story.at(16, Action.CHECKPOINT_TRIGGERED, **batch).at(17, Action.JOB_RUNNING, job="j")
    story.at(19, Action.CHECKPOINT_COMPLETED, **batch)

    *_, found = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert found.first_checkpoint_s == pytest.approx(5.9)


def back(story: Story, from_s: int, until_s: int) -> Story:
    """Output and a checkpoint once a second."""
    for second in range(from_s, until_s):
        story.checkpoint(second, second, second + 0.1)
        story.at(second + 0.2, Action.OUTPUT_SEEN, output="o", end=second, grown=1)
    return story


@pytest.mark.parametrize("healed_s", [44, 70])
def test_a_fault_without_a_failure_may_last_until_the_next_effect(
    healed_s: float, tmp_path: Path
) -> None:
    story = acting(flowing(100, 100), 0, "slow_link", 10, healed_s)
    kill = {"step": 1, "fault": "kill", "target": "x", "nodes": ["y"]}
    story.at(15, Action.FAULT_CALLED, **kill)
    story.at(45, Action.FAULT_IN_EFFECT, **kill, seen_ns=45 * 10**9)
    story.at(50, Action.FAULT_HEALED, **kill, seen_ns=50 * 10**9)
    result = Recovery(within_s=20).check(case(story, tmp_path, 2))
    assert result.outcome == Outcome.HELD, result.summary


def test_a_job_resumes_when_it_has_recovered_from_an_earlier_failure(tmp_path: Path) -> None:
    story = acting(flowing(9, 60), 0, "kill", 10, 12).at(11, Action.JOB_FAILING, job="j", cause="x")
    acting(story, 1, "slow_link", 13, 30).at(14, Action.JOB_RESTORED, job="j", checkpoint=9)
    back(story.at(15, Action.JOB_RUNNING, job="j"), 16, 60)
    *_, found = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert found.first_output_s == pytest.approx(3.1)
    assert found.first_checkpoint_s == pytest.approx(3.0)


def test_checkpoints_prove_that_a_job_ran_again_although_its_start_was_not_recorded(
    tmp_path: Path,
) -> None:
    story = acting(flowing(9, 60), 0, "kill", 10, 12).at(11, Action.JOB_FAILING, job="j", cause="x")
    result = Recovery(within_s=20).check(
        case(back(acting(story, 1, "kill", 15, 17), 18, 60), tmp_path, 2)
    )
    assert result.outcome == Outcome.HELD, result.summary


def test_an_executor_lost_before_the_fault_is_no_failure_of_the_job(
    tmp_path: Path,
) -> None:
    story = flowing(9, 60).at(9.5, Action.EXECUTOR_LOST, job="j", executor="1")
    acting(story, 0, "pause", 10, 12)
    for second in range(13, 60):
        story.at(second, Action.OUTPUT_SEEN, output="o", end=second, grown=1)
    judged = case(story, tmp_path)
    plain = judged.experiment.model_copy(update={"job": Job(sql="SELECT 1")})
    result = Recovery(within_s=20).check(replace(judged, experiment=plain))
    assert result.outcome == Outcome.HELD, result.summary


@pytest.mark.parametrize(("within_s", "expected_calls"), [(8, 1), (6.5, 0)])
def test_cut_off_recoveries_are_computed_only_where_all_else_holds(
    within_s: float, expected_calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each computation reads the metrics again."""
    calls = 0

    def poll(*_: object, only_files: bool) -> tuple[Phases, ...]:
        nonlocal calls
        calls += 1
        return ()

    monkeypatch.setattr(recovery, "recoveries_until_next_effect", poll)
    Recovery(within_s=within_s).check(case(killed_and_back(), tmp_path))
    assert calls == expected_calls


@pytest.mark.parametrize(
    ("back_s", "outcome"),
    [(9.0, Outcome.VIOLATED), (None, Outcome.UNDECIDED)],
)
def test_a_late_recovery_of_a_job_that_was_down_before_the_fault_is_undecided(
    back_s: float | None, outcome: Outcome, tmp_path: Path
) -> None:
    story = flowing(7, 90).at(8, Action.JOB_FAILING, job="j", cause="a bug")
    if back_s is not None:
        story.at(back_s, Action.JOB_RUNNING, job="j")
    acting(story, 0, "kill", 10, 12).at(13, Action.JOB_RESTARTING, job="j")
    back(story.at(60, Action.JOB_RUNNING, job="j"), 61, 90)
    judged = case(story, tmp_path)

    result = Recovery(within_s=20).check(judged)

    assert result.outcome == outcome, result.summary
    message = "the job had failed by itself at 8.0 s and did not run when the fault was called"
    assert result.summary.endswith(message) == (outcome == Outcome.UNDECIDED)
    assert Recovery(within_s=60).check(judged).outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("ended_s", "exit_code", "outcome"),
    [
        (40, 137, Outcome.UNDECIDED),
        (40, 1, Outcome.VIOLATED),  # the engine ended it
        (20.5, 137, Outcome.UNDECIDED),
        (19.5, 137, Outcome.VIOLATED),  # more than 30 s before the fault
        (95, 137, Outcome.VIOLATED),  # the system was back
    ],
)
def test_a_late_recovery_may_be_that_of_a_node_that_was_ended_from_outside(
    ended_s: float, exit_code: int, outcome: Outcome, tmp_path: Path
) -> None:
    story = acting(flowing(7, 90), 0, "kill", 50, 52).at(53, Action.JOB_RESTARTING, job="j")
    story.at(ended_s, Action.CONTAINER_DIED, node="kafka/broker-1", exit_code=exit_code)
    back(story.at(80, Action.JOB_RUNNING, job="j"), 81, 120)

    result = Recovery(within_s=20).check(case(story, tmp_path))

    assert result.outcome == outcome, result.summary
    message = f"kafka/broker-1 was ended by SIGKILL at {ended_s:.1f} s, which no fault did"
    assert result.summary.endswith(message) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize("exit_code", [1, 143])
def test_no_recovery_where_a_node_was_ended_from_outside_is_undecided(
    exit_code: int, tmp_path: Path
) -> None:
    story = acting(flowing(7, 90), 0, "kill", 10, 12)
    story.at(20, Action.CONTAINER_DIED, node="kafka/broker-1", exit_code=exit_code)
    story.at(130, Action.NOT_RECOVERED, reason="2 of 3 nodes")
    result = Recovery().check(case(story, tmp_path))
    assert result.outcome == (Outcome.VIOLATED if exit_code == 1 else Outcome.UNDECIDED)


def test_a_job_that_was_down_before_the_fault_may_have_lost_its_checkpoints_by_itself(
    tmp_path: Path,
) -> None:
    """It writes output again in time."""
    story = flowing(7, 90).at(8, Action.JOB_FAILING, job="j", cause="a bug")
    acting(story, 0, "kill", 10, 12).at(13, Action.JOB_RESTARTING, job="j")
    story.at(14, Action.JOB_RUNNING, job="j")
    for at_s in range(15, 91):
        story.at(at_s, Action.OUTPUT_SEEN, output="o", end=at_s, grown=1)

    result = Recovery(within_s=20).check(case(story, tmp_path))

    assert result.outcome == Outcome.UNDECIDED
    assert "no checkpoint was seen to complete" in result.summary
    assert result.summary.endswith("did not run when the fault was called")


def test_a_late_recovery_from_the_heal_of_such_a_job_is_undecided(tmp_path: Path) -> None:
    story = flowing(7, 90).at(8, Action.JOB_FAILING, job="j", cause="a bug")
    acting(acting(story, 0, "slow_link", 10, 30), 1, "pause", 11, 20)
    back(story.at(80, Action.JOB_RUNNING, job="j"), 81, 90)
    result = Recovery(within_s=20).check(case(story, tmp_path, 2))
    assert result.outcome == Outcome.UNDECIDED, result.summary


def test_a_job_that_was_down_before_the_fault_and_never_recovered_is_undecided(
    tmp_path: Path,
) -> None:
    story = flowing(7, 90).at(8, Action.JOB_FAILING, job="j", cause="a bug")
    acting(story, 0, "kill", 10, 12).at(130, Action.NOT_RECOVERED, reason="2 of 3 nodes")
    result = Recovery().check(case(story, tmp_path))
    assert result.outcome == Outcome.UNDECIDED, result.summary
    assert "failed by itself at 8.0 s" in result.summary


def test_sends_of_unknown_result_do_not_keep_the_load_going(tmp_path: Path) -> None:
    """Without output since the fault it is late only while records are sent."""
    story = acting(flowing(9, 25), 0, "kill", 10, 12)
    story.sent(100, 5, "unknown")
    assert Recovery(within_s=20).check(case(story, tmp_path)).outcome == Outcome.UNDECIDED


def test_a_heal_after_the_next_fault_is_verified_too(tmp_path: Path) -> None:
    story = acting(acting(flowing(60, 60), 0, "slow_link", 10, 30), 1, "pause", 20, 25)
    first, _ = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert first.unclear == ""
    assert first.first_output_s == pytest.approx(1.1)
    unhealed = acting(acting(flowing(60, 60), 0, "slow_link", 10, None), 1, "pause", 20, 25)
    first, _ = recoveries_of(unhealed.history(), tmp_path / "none", only_files=False)
    assert first.unclear == "output continued, and the heal of the fault was not verified"


def not_recovered(own_s: float | None, back_s: float, folder: Path) -> Outcome:
    """Two kills, at 100 s and 300 s. The job fails by itself at `own_s` and is back at `back_s`.
    The second kill ends the job for good."""
    story = flowing(97, 300)
    if own_s is not None:
        story.at(own_s, Action.JOB_FAILING, job="j")
        story.at(back_s, Action.JOB_RUNNING, job="j")
    acting(acting(story, 0, "kill", 100, 103), 1, "kill", 300, 303)
    for at_s in range(120, 298, 10):
        story.checkpoint(1000 + at_s, at_s, at_s + 1)
        story.at(at_s + 1.2, Action.OUTPUT_SEEN, output="o", end=at_s, grown=1)
    story.at(301, Action.JOB_FAILING, job="j")
    story.at(600, Action.NOT_RECOVERED, reason="flink: the job is RESTARTING")
    return Recovery(within_s=60).check(case(story, folder, 2)).outcome


def test_a_job_that_the_last_fault_ended_for_good_is_violated(tmp_path: Path) -> None:
    assert not_recovered(None, 0, tmp_path) == Outcome.VIOLATED


def test_an_own_failure_before_the_first_fault_does_not_excuse_the_last_one(
    tmp_path: Path,
) -> None:
    """The job was back at 105 s, and ran for 195 s until the second kill."""
    assert not_recovered(99, 105, tmp_path) == Outcome.VIOLATED


def test_a_job_down_by_itself_when_the_last_fault_was_called_is_undecided(
    tmp_path: Path,
) -> None:
    """The job failed by itself at 298 s and never ran again; the last fault was called at 300 s."""
    assert not_recovered(298, 900, tmp_path) == Outcome.UNDECIDED


def detected_late(own: bool, folder: Path) -> Outcome:
    """A worker becomes silent at 100 s; the engine notices at 150 s by its heartbeat, and the job
    runs again at 400 s. With `own` the job had failed by itself at 98 s; it ran at 101 s, wrote
    output and completed checkpoints until 149 s."""
    story = flowing(97, 450)
    if own:
        story.at(98, Action.JOB_FAILING, job="j").at(98.2, Action.JOB_RESTARTING, job="j")
        story.at(101, Action.JOB_RUNNING, job="j")
    acting(story, 0, "isolate", 100, 160)
    for at_s in range(102, 149):
        story.checkpoint(1000 + at_s, at_s, at_s + 0.5)
        story.at(at_s + 0.7, Action.OUTPUT_SEEN, output="o", end=at_s, grown=1)
    story.at(150, Action.JOB_FAILING, job="j", cause="heartbeat timed out")
    story.at(400, Action.JOB_RUNNING, job="j").checkpoint(2000, 401, 402)
    story.at(403, Action.OUTPUT_SEEN, output="o", end=999, grown=1).at(460, Action.DRAINED)
    return Recovery(within_s=60).check(case(story, folder)).outcome


def test_a_failure_that_was_noticed_late_is_violated(tmp_path: Path) -> None:
    assert detected_late(False, tmp_path) == Outcome.VIOLATED


def test_an_own_failure_that_was_over_does_not_excuse_one_by_the_fault(tmp_path: Path) -> None:
    assert detected_late(True, tmp_path) == Outcome.VIOLATED


def with_unverified_fault(called: bool, folder: Path) -> tuple[Outcome, str]:
    """A kill at 10 s, back at 15 s. A second fault is called at 30 s and not verified in effect;
    the job fails at 31 s and runs again at 100 s."""
    story = acting(flowing(9, 150), 0, "kill", 10, 12).at(11, Action.JOB_FAILING, job="j")
    story.at(14, Action.JOB_RUNNING, job="j")
    for at_s in (*range(15, 30), *range(101, 150)):
        story.checkpoint(1000 + at_s, at_s, at_s + 0.5)
        story.at(at_s + 0.7, Action.OUTPUT_SEEN, output="o", end=at_s, grown=1)
    if called:
        about = {"step": 1, "fault": "isolate", "target": "y", "nodes": ["y-1"]}
        story.at(30, Action.FAULT_CALLED, **about)
        story.at(50, Action.FAULT_NOT_IN_EFFECT, **about, reason="its effect was not seen")
        story.at(50.1, Action.HEAL_CALLED, **about)
        story.at(52, Action.FAULT_HEALED, **about, seen_ns=52 * 10**9)
    story.at(31, Action.JOB_FAILING, job="j").at(100, Action.JOB_RUNNING, job="j")
    result = Recovery(within_s=60).check(case(story.at(160, Action.DRAINED), folder, 2))
    return result.outcome, result.summary


def test_a_second_failure_soon_after_a_fault_is_its_own(
    tmp_path: Path,
) -> None:
    assert with_unverified_fault(False, tmp_path)[0] == Outcome.VIOLATED


def test_a_failure_after_the_call_of_an_unverified_fault_is_not_of_the_first(
    tmp_path: Path,
) -> None:
    outcome, summary = with_unverified_fault(True, tmp_path)
    assert outcome != Outcome.VIOLATED, summary


def late_beyond_next(own: bool, folder: Path) -> tuple[Outcome, str]:
    """A kill at 100 s; the next fault is called at 120 s, takes effect at 200 s and causes another
    failure. The job runs at 205 s. With `own` it had failed by itself at 98 s."""
    story = flowing(97, 300)
    if own:
        story.at(98, Action.JOB_FAILING, job="j")
    acting(story, 0, "kill", 100, 103).at(101, Action.JOB_FAILING, job="j")
    about = {"step": 1, "fault": "disk_full", "target": "x", "nodes": ["d-1"]}
    story.at(120, Action.FAULT_CALLED, **about)
    story.at(200, Action.FAULT_IN_EFFECT, **about, called_ns=120 * 10**9, seen_ns=200 * 10**9)
    story.at(203, Action.FAULT_HEALED, **about, seen_ns=203 * 10**9)
    story.at(201, Action.JOB_FAILING, job="j").at(205, Action.JOB_RUNNING, job="j")
    for at_s in range(206, 298):
        story.checkpoint(1000 + at_s, at_s, at_s + 0.5)
        story.at(at_s + 0.7, Action.OUTPUT_SEEN, output="o", end=at_s, grown=1)
    result = Recovery(within_s=60).check(case(story.at(310, Action.DRAINED), folder, 2))
    return result.outcome, result.summary


@pytest.mark.parametrize("own", [False, True])
def test_a_job_down_for_longer_than_the_limit_is_not_held(tmp_path: Path, own: bool) -> None:
    outcome, summary = late_beyond_next(own, tmp_path)
    assert outcome == Outcome.UNDECIDED, summary


@pytest.mark.parametrize(("within_s", "outcome"), [(105, Outcome.UNDECIDED), (120, Outcome.HELD)])
def test_a_job_whose_checkpoints_fail_for_longer_than_the_limit_is_not_held(
    tmp_path: Path, within_s: float, outcome: Outcome
) -> None:
    """After a kill at 100 s its output continues at 111 s, and its checkpoints at 206.5 s. Another
    fault, called at 120 s and in effect at 200 s, causes no failure."""
    story = acting(flowing(97, 300), 0, "kill", 100, 103).at(101, Action.JOB_FAILING, job="j")
    story.at(110, Action.JOB_RUNNING, job="j")
    for at_s in range(111, 298):
        story.at(at_s, Action.OUTPUT_SEEN, output="o", end=at_s, grown=1)
    about = {"step": 1, "fault": "slow_link", "target": "x"}
    story.at(120, Action.FAULT_CALLED, **about)
    story.at(200, Action.FAULT_IN_EFFECT, **about, called_ns=120 * 10**9, seen_ns=200 * 10**9)
    story.at(203, Action.FAULT_HEALED, **about, seen_ns=203 * 10**9)
    for at_s in range(206, 298):
        story.checkpoint(1000 + at_s, at_s, at_s + 0.5)
    judged = case(story.at(310, Action.DRAINED), tmp_path, 2)
    result = Recovery(within_s=within_s).check(judged)
    assert result.outcome == outcome, result.summary


def without_checkpoints_for_long(*, fails_again: bool) -> Story:
    """After a kill at 100 s output continues at 111 s, and checkpoints at 206.5 s. Another fault is
    called at 120 s and in effect at 200 s; with `fails_again` it causes a failure."""
    story = kill_at(flowing(97, 300), 100, 0, None).at(110, Action.JOB_RUNNING)
    for at_s in range(111, 298):
        story.at(at_s, Action.OUTPUT_SEEN, output="o", end=at_s, grown=1)
    about = {"step": 1, "fault": "slow_link", "target": "x"}
    story.at(120, Action.FAULT_CALLED, **about)
    story.at(200, Action.FAULT_IN_EFFECT, **about, called_ns=120 * 10**9, seen_ns=200 * 10**9)
    if fails_again:
        story.at(201, Action.JOB_RESTARTING, restart=2).at(205, Action.JOB_RUNNING)
    story.at(203, Action.FAULT_HEALED, **about, seen_ns=203 * 10**9)
    for at_s in range(206, 298):
        story.checkpoint(1000 + at_s, at_s, at_s + 0.5)
    return story.at(310, Action.DRAINED)


@pytest.mark.parametrize(
    ("fails_again", "within_s", "outcome"),
    [
        (False, 106.4, Outcome.UNDECIDED),
        (False, 106.5, Outcome.HELD),
        (True, 99, Outcome.UNDECIDED),
        (True, 100, Outcome.HELD),
    ],
)
def test_output_alone_is_no_recovery_until_the_next_fault_either(
    fails_again: bool, within_s: float, outcome: Outcome, tmp_path: Path
) -> None:
    story = without_checkpoints_for_long(fails_again=fails_again)
    result = Recovery(within_s=within_s).check(case(story, tmp_path, 2))
    assert result.outcome == outcome, result.summary


def test_a_failure_ends_with_the_first_recovery_after_it(tmp_path: Path) -> None:
    """The third fault causes no failure either."""
    story = acting(without_checkpoints_for_long(fails_again=False), 2, "pause", 250, 252)
    assert Recovery(within_s=120).check(case(story, tmp_path, 3)).outcome == Outcome.HELD


@pytest.mark.parametrize("only_files", [False, True])
def test_a_failure_from_which_the_job_had_recovered_before_the_call_changes_nothing(
    only_files: bool, tmp_path: Path
) -> None:
    """The fault makes no task fail; it is over when it is healed."""

    def phases_of(*, failed_before: bool) -> tuple[Phases, ...]:
        story = Story()
        if failed_before:
            story.at(2, Action.JOB_FAILING, cause="lost").at(3, Action.JOB_RESTORED, checkpoint=1)
            story.at(4, Action.JOB_RUNNING)
        story.checkpoint(2, 5, 6).at(7, Action.OUTPUT_SEEN, output="o", end=5).effect(10)
        story.at(15, Action.FAULT_HEALED, step=0, seen_ns=15 * 10**9)
        story.checkpoint(3, 16, 17).at(18, Action.OUTPUT_SEEN, output="o", end=9)
        return recoveries_of(story.history(), tmp_path / "none", only_files=only_files)

    assert phases_of(failed_before=True) == phases_of(failed_before=False)
    (phases,) = phases_of(failed_before=True)
    assert (phases.detected_s, phases.restored_s) == (None, None)


@pytest.mark.parametrize("only_files", [False, True])
@pytest.mark.parametrize("seen", ["output", "checkpoint"])
def test_a_heal_that_was_not_verified_leaves_the_start_unclear_if_output_went_on(
    seen: str, only_files: bool, tmp_path: Path
) -> None:
    """A job that writes files commits them with its checkpoints; others may write without one."""
    story = Story().checkpoint(1, 5, 6).at(7, Action.OUTPUT_SEEN, output="o", end=5).effect(10)
    if seen == "output":
        story.at(12, Action.OUTPUT_SEEN, output="o", end=9)
    else:
        story.checkpoint(2, 12, 13)
    (phases,) = recoveries_of(story.history(), tmp_path / "none", only_files=only_files)
    unclear = "output continued, and the heal of the fault was not verified"
    assert phases.unclear == (unclear if only_files == (seen == "checkpoint") else "")


def stamped(*, triggered_ms: int, duration_ms: int | None, completed_s: float) -> Story:
    """A job is killed at 10 s and runs again at 14 s, and its one checkpoint afterwards has these
    stamps. The engine's clock began 100 s before the run."""
    story = Story().at(1, Action.JOB_SUBMITTED, job="j", submitted_ms=101_000)
    story.sent(99, 9).effect(10).at(11, Action.JOB_FAILING, job="j", failed_ms=111_000)
    story.at(14, Action.JOB_RUNNING, job="j").at(15, Action.OUTPUT_SEEN, output="o", end=9)
    stamps = {"job": "j", "checkpoint": 5, "trigger_ms": triggered_ms}
    story.at(completed_s, Action.CHECKPOINT_TRIGGERED, **stamps)
    story.at(completed_s, Action.CHECKPOINT_COMPLETED, **stamps, duration_ms=duration_ms)
    return story.at(15.5, Action.FAULT_HEALED, step=0)


@pytest.mark.parametrize(
    ("triggered_ms", "duration_ms", "first_s"),
    [
        (114_500, 300, 4.8),
        (114_500, None, 12.0),  # its observation
        (114_000, 300, 4.3),  # by this one all tasks ran
        (109_900, 300, None),  # before the fault
    ],
)
def test_a_checkpoint_counts_at_its_own_moments(
    tmp_path: Path, triggered_ms: int, duration_ms: int | None, first_s: float | None
) -> None:
    """Its events are observed at 22 s."""
    story = stamped(triggered_ms=triggered_ms, duration_ms=duration_ms, completed_s=22)
    (phases,) = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert phases.first_checkpoint_s == (None if first_s is None else pytest.approx(first_s))


@pytest.mark.parametrize(
    ("began_ms", "ended_ms", "seen_s", "outcome"),
    [
        (185_000, 185_000, 85, Outcome.VIOLATED),
        (185_000, 120_000, 85, Outcome.UNDECIDED),
        (120_000, 185_000, 85, Outcome.UNDECIDED),
        (185_000, 109_000, 85, Outcome.UNDECIDED),  # it would be from before the fault
        (110_900, 110_950, 10.95, Outcome.VIOLATED),  # it completed before the failure
    ],
)
def test_a_late_checkpoint_whose_events_differ_in_its_trigger_decides_nothing(
    tmp_path: Path, began_ms: int, ended_ms: int, seen_s: float, outcome: Outcome
) -> None:
    story = stamped(triggered_ms=190_000, duration_ms=300, completed_s=90)
    about = {"job": "j", "checkpoint": 4}
    story.at(seen_s, Action.CHECKPOINT_TRIGGERED, **about, trigger_ms=began_ms)
    story.at(seen_s, Action.CHECKPOINT_COMPLETED, **about, trigger_ms=ended_ms, duration_ms=300)
    story._events.sort(key=lambda each: each.at_ns)
    story._events = [replace(each, index=n) for n, each in enumerate(story._events)]
    result = Recovery(within_s=60).check(case(story, tmp_path))
    assert result.outcome == outcome, result.summary
    told = "checkpoint 4 is recorded with triggers that are" in result.summary
    assert told == (outcome == Outcome.UNDECIDED)


def after_the_heal(*seen: str, loaded_s: float) -> Story:
    """A job that is back before the heal of a kill at 20 s; after it only what is `seen`."""
    story = acting(flowing(9, loaded_s), 0, "kill", 10, 20).at(11, Action.JOB_FAILING, job="j")
    story.at(12, Action.JOB_RUNNING, job="j").checkpoint(900, 13, 14)
    story.at(14, Action.OUTPUT_SEEN, output="o", end=9, grown=1)
    if "checkpoint" in seen:
        story.checkpoint(901, 22, 23)
    if "output" in seen:
        story.at(23, Action.OUTPUT_SEEN, output="o", end=19, grown=1)
    return story.at(loaded_s + 2, Action.DRAINED)


@pytest.mark.parametrize(
    ("seen", "loaded_s", "outcome"),
    [
        (("output", "checkpoint"), 40, Outcome.HELD),
        (("output",), 40, Outcome.UNDECIDED),
        (("checkpoint",), 40, Outcome.UNDECIDED),
        ((), 40, Outcome.UNDECIDED),
        ((), 90, Outcome.VIOLATED),
        ((), 22, Outcome.UNDECIDED),
        ((), 21, Outcome.HELD),  # everything may have been written before the heal
        (("output",), 80, Outcome.UNDECIDED),  # records were sent for no longer than the limit
        (("output",), 81, Outcome.VIOLATED),
    ],
)
def test_a_system_that_was_back_before_the_heal_is_back_after_it_too(
    tmp_path: Path, seen: tuple[str, ...], loaded_s: float, outcome: Outcome
) -> None:
    result = Recovery(within_s=60).check(case(after_the_heal(*seen, loaded_s=loaded_s), tmp_path))
    assert result.outcome == outcome, result.summary
    if outcome == Outcome.UNDECIDED:
        assert result.summary.startswith(("heal of kill (faults[0]): no ", "no further output"))


@pytest.mark.parametrize(("loaded_s", "outcome"), [(21, Outcome.HELD), (22, Outcome.UNDECIDED)])
def test_no_checkpoint_is_needed_after_a_heal_at_the_end_of_the_load(
    loaded_s: float, outcome: Outcome, tmp_path: Path
) -> None:
    """A record may be recorded a second after its send. The run did not drain."""
    story = after_the_heal("output", loaded_s=loaded_s)
    assert story._events.pop().action == Action.DRAINED
    assert Recovery(within_s=60).check(case(story, tmp_path)).outcome == outcome
