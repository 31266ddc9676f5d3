"""`restore`: the restored checkpoint and the duration; one changed value changes the outcome."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.restore import Restore
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.verdict.checkpoint_story import EXPIRED, JOB, CheckpointStory, stamp, unaligned


def restarted(
    restored: int | None = 2, second: dict[str, Any] | None = None, running_s: float = 17.0
) -> CheckpointStory:
    """Two checkpoints, a fault at 12 s that is detected at 13 s, and a restart from one of them."""
    recorded = CheckpointStory().submitted().running(2)
    recorded.completed(1, 5).completed(2, 10, **{"checkpointed_bytes": 800, **(second or {})})
    recorded.at(
        12,
        Action.FAULT_IN_EFFECT,
        step=0,
        called_ns=11_900_000_000,
        seen_ns=12_000_000_000,
        nodes=["flink/taskmanager-1"],
        evidence={},
    )
    recorded.failing(13)
    if restored is not None:
        recorded.restored(restored, 14.5)
    return recorded.running(running_s).completed(3, 20)


def check(story: CheckpointStory, folder: Path, **params: Any) -> CheckResult:
    return Restore.model_validate(params).check(story.judged(folder))


def test_the_newest_checkpoint_restored_is_held_with_its_phases(tmp_path: Path) -> None:
    result = check(restarted(), tmp_path, within_s=4, **{"from": "checkpoint"})

    assert result.outcome == Outcome.HELD
    assert result.counts == {
        "restarts": 1,
        "starts": 0,
        "failed": 0,
        "written_by_failed": None,
        "parallelism": 2,
        "former_parallelism": None,
        "restores": 1,
        "restored_checkpoint": 2,
        "newest_checkpoint": 2,
        "restored_bytes": 5000,
        "restored_in_flight_bytes": 4000,
        "age_s": 2.9,
        "detect_s": 1.0,
        "end_s": None,
        "submit_s": None,
        "until_restored_s": 1.5,
        "until_running_s": 2.5,
        "restart_s": 4.0,
        "initializing_ms": 40,
        "incremental": 1,
        "full": 2,
    }
    assert result.summary == (
        "checkpoint 2 (5,000 bytes) restored; detected after 1.0 s, state assigned after 1.5 s, "
        "running after 2.5 s, map/1 initialized for 40 ms"
    )


def test_an_older_checkpoint_is_found_with_both_numbers(tmp_path: Path) -> None:
    result = check(restarted(restored=1), tmp_path)

    assert result.outcome == Outcome.VIOLATED
    finding = result.findings[0]
    assert (finding.what, finding.where) == ("older checkpoint restored", "restart at 13.0 s")
    assert (finding.detail["restored"], finding.detail["newest"]) == (1, 2)
    assert finding.detail["newest_completed_before_s"] == pytest.approx(2.9)


@pytest.mark.parametrize("moved_ms", [-3_600_000, -5000, 3_600_000])
@pytest.mark.parametrize(("restored", "outcome"), [(1, Outcome.VIOLATED), (2, Outcome.HELD)])
def test_where_a_fault_moved_the_clocks_the_observations_count(
    moved_ms: int, restored: int, outcome: Outcome, tmp_path: Path
) -> None:
    """By the moved stamps the job failed before any checkpoint had completed."""
    recorded = restarted(restored)
    recorded.at(3, Action.FAULT_CALLED, step=1, fault="clock_skew")
    early = moved_ms > 0
    recorded._events = [
        moved(each, moved_ms if (each.at_s < 12) == early else 0) for each in recorded._events
    ]
    result = check(recorded, tmp_path)
    assert result.outcome == outcome, result.summary
    assert result.counts["newest_checkpoint"] == 2


def moved(event: Event, by_ms: int) -> Event:
    """The event with the engine's stamps as a moved clock gives them."""
    stamps = {"trigger_ms", "failed_ms", "restarting_ms", "restored_at_ms", "start_ms"}
    value = {key: held + by_ms if key in stamps else held for key, held in event.value.items()}
    return replace(event, value=value)


def test_checkpoint_zero_is_older_than_every_other(tmp_path: Path) -> None:
    recorded = restarted(restored=None)
    recorded.completed(0, 4).restored(0, 14.5)
    (finding,) = check(recorded, tmp_path).findings
    assert (finding.what, finding.detail["restored"]) == ("older checkpoint restored", 0)


def test_every_wrong_restart_is_reported(tmp_path: Path) -> None:
    result = check(restarted(restored=1).failing(30).restored(2, 32).running(36), tmp_path)

    assert result.outcome == Outcome.VIOLATED
    assert result.summary.startswith(
        "older checkpoint restored (restart at 13.0 s), older checkpoint restored (restart at "
        "30.0 s); "
    )


def test_a_checkpoint_that_failed_is_no_newer_one(tmp_path: Path) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).failed(2, 6, took_s=2)
    assert check(story.failing(13).restored(1, 14).running(17), tmp_path).outcome == Outcome.HELD


def test_a_checkpoint_of_partly_known_size_is_neither_full_nor_incremental(
    tmp_path: Path,
) -> None:
    result = check(restarted(second={"state_bytes": None}), tmp_path)
    assert (result.counts["incremental"], result.counts["full"]) == (0, 2)
    assert result.counts["restored_bytes"] is None


def test_a_checkpoint_completed_in_between_is_held(tmp_path: Path) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 12.9, 0.2)
    story.failing(13)
    for number in (1, 2):
        recorded = CheckpointStory()
        recorded._events = [*story._events]
        recorded.restored(number, 14).running(15)
        assert check(recorded, tmp_path).outcome == Outcome.HELD


def test_a_failure_observed_after_its_restore_is_judged_by_its_own_stamp(tmp_path: Path) -> None:
    """With separate polls, the restore of a quick restart is observed before its cause."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10)
    story.restored(1, 13.1).failing(13, seen_s=0.4).running(14)

    result = check(story, tmp_path)

    assert result.outcome == Outcome.VIOLATED
    assert result.findings[0].where == "restart at 13.0 s"


@pytest.mark.parametrize(
    ("trigger_s", "seen_s", "outcome"),
    [
        (12.0, 13.5, Outcome.VIOLATED),
        (12.0, 14.2, Outcome.HELD),  # it may not have been complete at the restore
        (12.0, 13.95, Outcome.HELD),  # about when it was restored
        (12.0, 14.05, Outcome.HELD),
        (12.95, 13.5, Outcome.HELD),  # it was acknowledged after the failure
    ],
)
def test_a_late_observed_checkpoint_is_the_newest_by_its_own_stamps(
    tmp_path: Path, trigger_s: float, seen_s: float, outcome: Outcome
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).failing(13)
    story.completed(2, seen_s - 0.1, trigger_ms=stamp(trigger_s)).restored(1, 14).running(15)
    assert check(story, tmp_path).outcome == outcome


@pytest.mark.parametrize(
    ("restored", "acknowledged_s", "next_s", "at_once", "outcome"),
    [
        (1, 11.5, None, 1, Outcome.UNDECIDED),
        (1, 11.5, 12.5, 1, Outcome.VIOLATED),
        (1, 11.5, 12.5, 2, Outcome.UNDECIDED),
        (1, 11.5, 12.5, None, Outcome.UNDECIDED),
        (1, 11.5, 12.95, 1, Outcome.UNDECIDED),  # at about the failure
        (1, 11.5, 16, 1, Outcome.UNDECIDED),
        (1, 12.5, None, 1, Outcome.HELD),  # its metadata may not have been written
        (2, 11.5, 12.5, 1, Outcome.HELD),
    ],
)
def test_a_checkpoint_observed_complete_after_the_restore_may_have_completed_before_the_failure(
    tmp_path: Path,
    restored: int,
    acknowledged_s: float,
    next_s: float | None,
    at_once: int | None,
    outcome: Outcome,
) -> None:
    """As if the engine was unreachable from before the failure until after the restore."""
    config: dict[str, Any] = {} if at_once is None else {"max_concurrent": at_once}
    story = CheckpointStory().submitted(**config).running(2).completed(1, 5).failing(13)
    story.restored(restored, 14).running(17)
    began_ms = stamp(acknowledged_s - 0.1)
    story.at(20, Action.CHECKPOINT_TRIGGERED, job="job", checkpoint=2, trigger_ms=began_ms)
    story.completed(2, 20, trigger_ms=began_ms)
    if next_s is not None:
        story.completed(3, 21, trigger_ms=stamp(next_s))
    result = check(story, tmp_path)
    assert result.outcome == outcome
    if outcome == Outcome.UNDECIDED:
        assert result.summary == (
            "restart at 13.0 s: checkpoint 1 was restored, and checkpoint 2, acknowledged 1.5 s "
            "before, was seen to complete too late"
        )


@pytest.mark.parametrize(
    ("restored", "next_s", "at_once", "failed_s", "outcome"),
    [
        (1, 11, 1, None, Outcome.UNDECIDED),
        (2, 11, 1, None, Outcome.UNDECIDED),  # it was not seen to complete
        (4, 11, 1, None, Outcome.HELD),
        (1, None, 1, None, Outcome.HELD),  # it may have been in progress
        (1, 12.95, 1, None, Outcome.HELD),  # at about the failure
        (1, 11, 2, None, Outcome.HELD),
        (1, 11, None, None, Outcome.HELD),
        (1, 11, 1, 9, Outcome.HELD),  # it may have been in progress at the failure before
    ],
)
def test_a_newer_checkpoint_without_its_end_may_have_completed(
    restored: int,
    next_s: float | None,
    at_once: int | None,
    failed_s: float | None,
    outcome: Outcome,
    tmp_path: Path,
) -> None:
    config: dict[str, Any] = {} if at_once is None else {"max_concurrent": at_once}
    story = CheckpointStory().submitted(**config).running(2).completed(1, 5).triggered(2, 8)
    if failed_s is not None:
        story.failing(failed_s).restored(1, 10).running(10.5)
    if next_s is not None:
        story.failed(3, next_s, took_s=0.2)
    if restored == 4:
        story.completed(4, 12)
    result = check(story.failing(13).restored(restored, 14).running(15), tmp_path)
    assert result.outcome == outcome, result.summary
    if (restored, outcome) == (1, Outcome.UNDECIDED):
        assert result.summary == (
            "restart at 13.0 s: checkpoint 1 was restored, and the end of checkpoint 2 was not "
            "recorded, which had ended before"
        )


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("SAVEPOINT", Outcome.UNDECIDED), ("UNALIGNED_CHECKPOINT", Outcome.VIOLATED)],
)
def test_a_newer_checkpoint_whose_events_differ_in_their_type_decides_nothing(
    kind: str, outcome: Outcome, tmp_path: Path
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).triggered(2, 8)
    about = {"job": JOB, "checkpoint": 2, "trigger_ms": stamp(8), "duration_ms": 100}
    story.at(8.1, Action.CHECKPOINT_COMPLETED, **about, type=kind)
    result = check(story.failing(13).restored(1, 14).running(15), tmp_path)
    assert result.outcome == outcome
    told = "checkpoint 2 is recorded as a savepoint and as another checkpoint" in result.summary
    assert told == (outcome == Outcome.UNDECIDED)


def test_a_checkpoint_restored_before_its_trigger_is_undecided(tmp_path: Path) -> None:
    def triggered(at_s: float) -> CheckpointStory:
        story = CheckpointStory().submitted().running(2).completed(1, 5).failing(13)
        story.restored(2, 14).running(15)
        # It is observed late, as if the JobManager was unreachable.
        story.at(20, Action.CHECKPOINT_TRIGGERED, job="job", checkpoint=2, trigger_ms=stamp(at_s))
        return story.completed(2, 20, trigger_ms=stamp(at_s))

    result = check(triggered(16), tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "checkpoint 2 was restored 2.0 s before it was triggered" in result.summary
    assert check(triggered(12), tmp_path).outcome == Outcome.HELD


def test_a_checkpoint_acknowledged_after_its_restore_is_undecided(tmp_path: Path) -> None:
    def acknowledged(at_s: float) -> CheckpointStory:
        story = CheckpointStory().submitted().running(2).completed(1, 5).triggered(2, 12)
        story.failing(13).restored(2, 14).running(15)
        return story.completed(2, 20, at_s - 12, trigger_ms=stamp(12))

    result = check(acknowledged(16), tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "checkpoint 2 was restored 2.0 s before it was acknowledged" in result.summary
    for early_s in (13.95, 14.05):
        assert check(acknowledged(early_s), tmp_path).outcome == Outcome.HELD


@pytest.mark.parametrize("ends", [("completed", "failed"), ("failed", "completed")])
@pytest.mark.parametrize(
    ("restored", "outcome"),
    [
        (1, Outcome.VIOLATED),  # checkpoint 2 is newer in any case
        (2, Outcome.UNDECIDED),
        (3, Outcome.UNDECIDED),
        (4, Outcome.HELD),
    ],
)
def test_a_checkpoint_that_completed_and_failed_decides_nothing(
    ends: tuple[str, str], restored: int, outcome: Outcome, tmp_path: Path
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 8)
    story.triggered(3, 10)
    for at_s, end in zip((10.5, 10.6), ends, strict=True):
        action = Action.CHECKPOINT_COMPLETED if end == "completed" else Action.CHECKPOINT_FAILED
        about = {"job": "job", "checkpoint": 3, "trigger_ms": stamp(10), "duration_ms": 500}
        story.at(at_s, action, **about, reason=EXPIRED)
    if restored == 4:
        story.completed(4, 11)
    result = check(story.failing(13).restored(restored, 14).running(15), tmp_path)
    assert result.outcome == outcome, result.summary
    named = "checkpoint 3 is recorded both to have completed and to have failed" in result.summary
    assert named == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("took_ms", "restored", "outcome"),
    [
        (300, 2, Outcome.VIOLATED),
        (300, 3, Outcome.HELD),
        (3000, 2, Outcome.UNDECIDED),  # it looks as if it had completed after the failure
        (3000, 3, Outcome.UNDECIDED),
        (3000, 4, Outcome.HELD),
    ],
)
def test_a_duration_that_its_subtasks_contradict_decides_nothing(
    took_ms: int, restored: int, outcome: Outcome, tmp_path: Path
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 8)
    story.triggered(3, 10)
    parts = [{**each, "duration_ms": 300} for each in unaligned()]
    about = {"job": JOB, "checkpoint": 3, "trigger_ms": stamp(10), "duration_ms": took_ms}
    story.at(10.5, Action.CHECKPOINT_COMPLETED, **about, path="/chk-3", subtasks=parts)
    story.at(10.5, Action.CHECKPOINT_ACKNOWLEDGED, job=JOB, checkpoint=3, subtasks=4)
    if restored == 4:
        story.completed(4, 11)
    result = check(story.failing(12).restored(restored, 14).running(15), tmp_path)
    assert result.outcome == outcome, result.summary
    told = "checkpoint 3 is recorded to have taken 3,000 ms, and its slowest subtask 300 ms"
    assert (told in result.summary) == (outcome == Outcome.UNDECIDED)


def test_a_failed_checkpoint_of_the_replaced_job_that_also_completed_decides_nothing(
    tmp_path: Path,
) -> None:
    story = restarted_as_ordered(1, "hdfs:///chk-1")
    story.at(10.5, Action.CHECKPOINT_FAILED, job="job", checkpoint=2, reason=EXPIRED)
    result = check(story, tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "checkpoint 2 is recorded both" in result.summary


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/chk-2", ""),
        (None, ""),
        ("/chk-1", "checkpoint 2 was restored from the path of checkpoint 1"),
        ("/chk-9", "checkpoint 2 was restored from /chk-9, and is stored in /chk-2"),
    ],
)
def test_a_restore_whose_number_and_path_differ_is_undecided(
    tmp_path: Path, path: str | None, message: str
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10).failing(13)
    story.at(14, Action.JOB_RESTORED, job="job", checkpoint=2, restored_at_ms=stamp(14), path=path)
    result = check(story.running(15), tmp_path)
    assert result.outcome == (Outcome.UNDECIDED if message else Outcome.HELD)
    assert message in result.summary


@pytest.mark.parametrize(
    ("number", "path", "message"),
    [
        (1, "/chk-2", "checkpoint 1 was restored from the path of checkpoint 2"),
        (1, "/chk-9", "checkpoint 1 was restored from /chk-9, and is stored in /chk-1"),
        (1, "/chk-1", ""),
    ],
)
def test_no_checkpoint_is_older_while_its_path_is_another(
    tmp_path: Path, number: int, path: str, message: str
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10).failing(13)
    about = {"job": "job", "checkpoint": number, "restored_at_ms": stamp(14), "path": path}
    result = check(story.at(14, Action.JOB_RESTORED, **about).running(15), tmp_path)  # type: ignore[attr-defined]
    assert result.outcome == (Outcome.UNDECIDED if message else Outcome.VIOLATED), result.summary
    assert message in result.summary
    savepoint = check(story, tmp_path, **{"from": "savepoint"})
    wrong = ["older checkpoint restored", "restored from a checkpoint"]
    assert [each.what for each in savepoint.findings] == ([] if message else wrong)


@pytest.mark.parametrize(("first", "outcome"), [(1, Outcome.UNDECIDED), (2, Outcome.HELD)])
def test_of_two_restores_in_one_restart_neither_may_be_older(
    tmp_path: Path, first: int, outcome: Outcome
) -> None:
    """Two regions may restore one after the other."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10).failing(13)
    result = check(story.restored(first, 14).restored(2, 14.5).running(15), tmp_path)
    assert result.outcome == outcome
    recorded = "checkpoint 2 was restored, and checkpoint 1 just before it" in result.summary
    assert recorded == (outcome == Outcome.UNDECIDED)


def test_nothing_restored_although_a_checkpoint_existed_is_violated(tmp_path: Path) -> None:
    result = check(restarted(restored=None), tmp_path)

    assert result.outcome == Outcome.VIOLATED
    assert result.findings[0].what == "nothing restored"
    assert result.findings[0].detail["newest"] == 2


def test_each_restart_is_judged_and_the_longest_phases_are_reported(tmp_path: Path) -> None:
    story = restarted().failing(30).restored(3, 32).running(36, (10, 20, 900, 40))
    held = check(story, tmp_path)
    late = check(story, tmp_path, within_s=5)

    assert held.outcome == Outcome.HELD
    assert held.counts["restarts"] == held.counts["restores"] == 2
    assert held.counts["restored_checkpoint"] == 3
    assert (held.counts["restart_s"], held.counts["initializing_ms"]) == (6, 900)
    assert held.summary.startswith("2 restarts, the slowest: checkpoint 3")
    assert [(f.what, f.where) for f in late.findings] == [("too slow", "restart at 30.0 s")]
    assert late.findings[0].detail["slowest"] == "map/0"


def test_a_restart_that_fails_is_followed_by_another(tmp_path: Path) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10)
    story.failing(13).restored(2, 14).failing(15).restored(1, 16).running(17)

    result = check(story, tmp_path)

    assert result.counts["restarts"] == 2
    assert result.counts["restart_s"] == 4, "the first restart was over only when all tasks ran"
    assert [f.where for f in result.findings] == ["restart at 15.0 s"]


def failed_twice(began_s: float | None, **changed: Any) -> CheckpointStory:
    """Two failures, at 13 s and 20 s, and a restore after the second one alone; a checkpoint that
    was triggered in between completed."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10)
    story.failing(13)
    if began_s is not None:
        story.completed(3, began_s, **changed)
    return story.failing(20).restored(2 if began_s is None else 3, 21).running(22)


def test_a_checkpoint_between_two_failures_shows_two_restarts(tmp_path: Path) -> None:
    result = check(failed_twice(15), tmp_path)
    assert (result.outcome, result.counts["restarts"]) == (Outcome.UNDECIDED, 2)
    assert result.summary == (
        "restart at 13.0 s: no restore was seen; restart at 13.0 s: not every task was seen to "
        "run again"
    )


@pytest.mark.parametrize(
    ("began_s", "changed"),
    [
        (None, {}),
        (12.8, {"took_s": 0.5}),  # triggered before the failure
        (13.05, {}),  # within the tolerance of the stamps
        (15, {"type": "micro-batch"}),
        (15, {"job": "another"}),
        (15, {"trigger_ms": 0}),
    ],
)
def test_a_restart_that_fails_before_its_restore_belongs_to_the_next_one(
    began_s: float | None, changed: dict[str, Any], tmp_path: Path
) -> None:
    result = check(failed_twice(began_s, **changed), tmp_path)
    assert result.counts["restarts"] == 1
    assert "restart at 20.0 s" not in result.summary


def test_where_a_fault_moved_the_clocks_no_checkpoint_shows_a_restart(tmp_path: Path) -> None:
    """The checkpoint may have been triggered before the failure."""
    recorded = failed_twice(15)
    recorded.at(3, Action.FAULT_CALLED, step=1, fault="clock_skew")
    assert check(recorded, tmp_path).counts["restarts"] == 1


@pytest.mark.parametrize(
    ("restored", "changed", "outcome", "restarts"),
    [
        (1, {}, Outcome.VIOLATED, 2),
        (2, {}, Outcome.UNDECIDED, 2),
        # Without a stamp it may have been restored before the checkpoint was triggered.
        (1, {"restored_at_ms": None}, Outcome.HELD, 1),
    ],
)
def test_a_job_that_ran_before_its_restore_had_failed_again(
    restored: int, changed: dict[str, Any], outcome: Outcome, restarts: int, tmp_path: Path
) -> None:
    """The second failure is not in the record."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).failing(7).completed(2, 10)
    about = {"job": JOB, "checkpoint": restored, "restored_at_ms": stamp(14.5), **changed}
    story.at(14.5, Action.JOB_RESTORED, **about)
    result = check(story.running(17).completed(3, 20), tmp_path)
    assert (result.outcome, result.counts["restarts"]) == (outcome, restarts)
    older = [("older checkpoint restored", "restart at 14.5 s")]
    assert [(f.what, f.where) for f in result.findings] == older * (outcome == Outcome.VIOLATED)


def test_a_job_seen_to_run_after_its_checkpoint_ran_again(tmp_path: Path) -> None:
    """The answer about the running tasks may come after that about the checkpoint."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).failing(13)
    story.completed(2, 15).running(15.2)
    result = check(story, tmp_path)
    assert [(f.what, f.where) for f in result.findings] == [
        ("nothing restored", "restart at 13.0 s")
    ]


def stamped_early(restored_at_s: float, *, checkpoint_s: float = 18.0) -> CheckpointStory:
    """A restore that was observed at 30 s, with another stamp, after a failure at 28 s."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, checkpoint_s)
    story.failing(28)
    story.at(30, Action.JOB_RESTORED, job=JOB, checkpoint=2, restored_at_ms=stamp(restored_at_s))
    return story.running(32).completed(3, 34)


def test_a_restore_that_was_not_reported_since_its_stamp_is_undecided(tmp_path: Path) -> None:
    result = check(stamped_early(12), tmp_path)
    assert (result.outcome, result.counts["restarts"]) == (Outcome.UNDECIDED, 1)
    assert result.summary == (
        "restart at 28.0 s: its restore is stamped with 12.0 s, and the engine did not report it "
        "by 18.1 s"
    )


@pytest.mark.parametrize(
    ("restored_at_s", "checkpoint_s"),
    [
        (29.0, 18.0),  # a usual restore
        (12.0, 16.5),  # an answer may take until then
        (12.0, 26.0),  # the answer with the restore may have taken as long
    ],
)
def test_an_answer_may_take_some_seconds(
    restored_at_s: float, checkpoint_s: float, tmp_path: Path
) -> None:
    story = stamped_early(restored_at_s, checkpoint_s=checkpoint_s)
    assert "its restore is stamped with" not in check(story, tmp_path).summary


@pytest.mark.parametrize(
    ("restored_at_s", "message"),
    [
        (9.0, "checkpoint 2 was restored 1.0 s before it was triggered"),
        (10.2, "checkpoint 2 was restored 1.8 s before it was acknowledged"),
    ],
)
def test_a_restore_stamped_before_its_checkpoint_decides_nothing(
    restored_at_s: float, message: str, tmp_path: Path
) -> None:
    """It was seen after the failure, which would have no restore by that stamp."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10, 2.0)
    story.failing(18)
    about = {"job": JOB, "checkpoint": 2, "restored_at_ms": stamp(restored_at_s)}
    story.at(19.5, Action.JOB_RESTORED, **about)
    result = check(story.running(21).completed(3, 24), tmp_path)
    assert (result.outcome, result.counts["restarts"]) == (Outcome.UNDECIDED, 1), result.summary
    assert result.summary == f"restart at 18.0 s: {message}"


@pytest.mark.parametrize("own", [True, False])
def test_a_restore_of_a_job_that_was_not_submitted_decides_nothing(
    own: bool, tmp_path: Path
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10).failing(13)
    about = {"job": JOB if own else "other", "checkpoint": 2, "restored_at_ms": stamp(14.5)}
    story.at(14.5, Action.JOB_RESTORED, **about)
    result = check(story.running(17).completed(3, 20), tmp_path)
    assert result.outcome == (Outcome.HELD if own else Outcome.UNDECIDED)
    message = "`job restored` is recorded of the job other, which was not submitted"
    assert (result.summary == message) == (not own)


EARLY = "its restore is stamped with 12.5 s, before the failure at 13.0 s, and no failure was seen"


@pytest.mark.parametrize(
    ("restored", "seen_s", "outcome"),
    [
        (2, 14.5, Outcome.UNDECIDED),
        (1, 14.5, Outcome.VIOLATED),  # it is older than the newest one in any case
        (2, 12.6, Outcome.VIOLATED),  # it was restored before the failure
    ],
)
def test_a_restore_stamped_before_its_failure_decides_nothing(
    restored: int, seen_s: float, outcome: Outcome, tmp_path: Path
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10).failing(13)
    about = {"job": JOB, "checkpoint": restored, "restored_at_ms": stamp(12.5)}
    story.at(seen_s, Action.JOB_RESTORED, **about)
    result = check(story.running(17).completed(3, 20), tmp_path)
    assert result.outcome == outcome
    assert (EARLY in result.summary) == (outcome == Outcome.UNDECIDED)
    expected = {1: ["older checkpoint restored"], 2: ["nothing restored"]}[restored]
    assert [f.what for f in result.findings] == expected * (outcome == Outcome.VIOLATED)


@pytest.mark.parametrize("failures", [(12.0, 13.0), (13.0,)])
def test_a_restore_belongs_to_the_failure_before_its_stamp(
    failures: tuple[float, ...], tmp_path: Path
) -> None:
    """The next failure has a restore of its own where no failure is before the stamp."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10)
    for at_s in failures:
        story.failing(at_s)
    story.at(14.5, Action.JOB_RESTORED, job=JOB, checkpoint=2, restored_at_ms=stamp(12.5))
    if len(failures) == 1:
        story.restored(2, 14.6)
    result = check(story.running(17).completed(3, 20), tmp_path)
    assert "its restore is stamped with" not in result.summary


def test_a_checkpoint_of_another_job_proves_nothing_about_a_restore(tmp_path: Path) -> None:
    story = stamped_early(12, checkpoint_s=10).completed(7, 18, job="another")
    assert "its restore is stamped with" not in check(story, tmp_path).summary


@pytest.mark.parametrize(
    ("began_s", "ended_s", "told"),
    [
        (20, 14.6, True),  # it would have run at 14.6 s
        (14.6, 20, True),
        (20, 18, False),  # both are after it was seen to run
        (20, 12, False),  # one of the job that failed
    ],
)
def test_a_checkpoint_whose_events_differ_in_its_trigger_does_not_show_when_the_job_ran(
    tmp_path: Path, began_s: float, ended_s: float, told: bool
) -> None:
    story = restarted()
    *_, began, ended = story._events
    story._events[-2] = replace(began, value={**began.value, "trigger_ms": stamp(began_s)})
    story._events[-1] = replace(ended, value={**ended.value, "trigger_ms": stamp(ended_s)})
    result = check(story, tmp_path, within_s=2)
    assert result.outcome == (Outcome.UNDECIDED if told else Outcome.VIOLATED)
    message = f"checkpoint 3 is recorded with triggers that are {abs(began_s - ended_s):.1f} s"
    assert (message in result.summary) == told


def runs_before_its_tasks(running_s: float, deployed_s: float, **task: Any) -> CheckpointStory:
    """A restart that is over at some moment by the state of the job, and a task that is deployed at
    another one, and observed at 18 s."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10).failing(13)
    story.restored(2, 14.5).at(running_s, Action.JOB_RUNNING, job=JOB)
    about = {"job": JOB, "vertex": "v1", "vertex_name": "source", "subtask": 0, "attempt": 1}
    value = {**about, "node": "n", "state": "RUNNING", "start_ms": stamp(deployed_s), **task}
    story.at(18, Action.TASK_CHANGED, **value)
    return story


@pytest.mark.parametrize(
    ("running_s", "deployed_s", "task", "within_s", "outcome"),
    [
        (15.0, 16.5, {}, 3, Outcome.UNDECIDED),
        (15.0, 16.5, {}, 1, Outcome.VIOLATED),  # it is even later
        (15.0, 15.5, {}, 3, Outcome.HELD),  # as exact as clocks are
        (15.0, 16.5, {"job": "another"}, 3, Outcome.HELD),
        (15.0, 16.5, {"start_ms": -1}, 3, Outcome.HELD),  # it was not deployed yet
        (15.0, 16.5, {"start_ms": None}, 3, Outcome.HELD),
    ],
)
def test_a_job_does_not_run_before_its_tasks_are_deployed(
    running_s: float,
    deployed_s: float,
    task: dict[str, Any],
    within_s: float,
    outcome: Outcome,
    tmp_path: Path,
) -> None:
    result = check(
        runs_before_its_tasks(running_s, deployed_s, **task), tmp_path, within_s=within_s
    )
    assert result.outcome == outcome, result.summary
    told = (
        "every task was seen to run at 15.0 s, and source (0) was deployed at 16.5 s"
        in result.summary
    )
    assert told == (outcome == Outcome.UNDECIDED)


def test_a_task_may_be_deployed_after_the_next_failure(tmp_path: Path) -> None:
    story = runs_before_its_tasks(15.0, 16.5).failing(16).restored(2, 16.4).running(18.5)
    assert check(story, tmp_path).outcome == Outcome.HELD


def test_where_a_fault_moved_the_clocks_no_task_shows_when_it_was_deployed(tmp_path: Path) -> None:
    story = runs_before_its_tasks(15.0, 16.5)
    story.at(3, Action.FAULT_CALLED, step=1, fault="clock_skew")
    assert check(story, tmp_path).outcome == Outcome.HELD


def test_a_late_observed_restart_belongs_to_its_own_failure(
    tmp_path: Path,
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5)
    story.failing(13).restored(1, 14).failing(16).running(16.3).restored(1, 17).running(18)

    result = check(story.completed(2, 20), tmp_path)

    assert result.outcome == Outcome.HELD
    assert (result.counts["restarts"], result.counts["restores"]) == (2, 2)


def test_a_restart_without_an_observed_failure_begins_at_its_restore(
    tmp_path: Path,
) -> None:
    for number, outcome in ((3, Outcome.HELD), (2, Outcome.VIOLATED)):
        result = check(restarted().restored(number, 30).running(32), tmp_path)
        assert result.outcome == outcome
        assert result.counts["restarts"] == 2


@pytest.mark.parametrize(
    ("kind", "wanted", "outcome"),
    [
        ("SAVEPOINT", "savepoint", Outcome.HELD),
        ("SAVEPOINT", "checkpoint", Outcome.VIOLATED),
        ("CHECKPOINT", "savepoint", Outcome.VIOLATED),
    ],
)
def test_a_job_that_is_started_from_a_savepoint(
    kind: str, wanted: str, outcome: Outcome, tmp_path: Path
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10, type=kind)
    story.submitted(12, job="next").restored(2, 13, job="next").running(15, job="next")

    result = check(story, tmp_path, **{"from": wanted})

    assert result.outcome == outcome
    assert result.counts["restarts"] == 0
    assert result.counts["restart_s"] == 3
    if outcome == Outcome.VIOLATED:
        found = "savepoint" if kind == "SAVEPOINT" else "checkpoint"
        assert result.findings[0].what == f"restored from a {found}"


def replaced(widest: int = 3) -> CheckpointStory:
    """A job that is cancelled at 12 s, and the next one that is submitted at 14 s."""
    story = CheckpointStory().submitted().running(2).completed(1, 5).completed(2, 10)
    story.at(11, Action.FAULT_CALLED, fault="restart_job", target="the job", step=0)
    story.at(12, Action.JOB_ENDED, job="job", state="CANCELED", cause="", ended_ms=stamp(12))
    vertices = [{"id": "v1", "name": "source", "parallelism": widest}] if widest else []
    story.at(
        16,
        Action.JOB_SUBMITTED,
        job="next",
        name="next",
        vertices=vertices,
        edges=[],
        regions=[],
        config={},
        submitted_ms=stamp(14),
    )
    return story


def test_a_replacement_job_has_every_phase(tmp_path: Path) -> None:
    """Only the last order to end the replaced job gives the start of the phase."""
    story = replaced()
    story.at(11.5, Action.FAULT_CALLED, fault="kill", target="one of flink/taskmanager", step=1)
    story.at(15.9, Action.FAULT_CALLED, fault="restart_job", target="the job", step=2)
    story.at(
        16, Action.JOB_RESTORED, job="next", checkpoint=2, restored_at_ms=stamp(14.5), path="/chk-2"
    )
    result = check(story.running(18, job="next").completed(3, 20, job="next"), tmp_path)

    assert result.outcome == Outcome.HELD
    expected = {
        "starts": 1,
        "restarts": 0,
        "failed": 0,
        "parallelism": 3,
        "former_parallelism": 2,
        "restored_bytes": 5000,
        "restored_in_flight_bytes": 4000,
        "age_s": 1.9,
        "end_s": 1.0,
        "submit_s": 2.0,
        "until_restored_s": 0.5,
        "until_running_s": 3.5,
        "restart_s": 6.0,
    }
    assert {key: result.counts[key] for key in expected} == expected
    assert result.summary.startswith(
        "checkpoint 2 (5,000 bytes) restored at a parallelism of 3 after 2; the job before it "
        "ended after 1.0 s, submitted after 2.0 s"
    )


@pytest.mark.parametrize(("path", "size"), [("/chk-7", 1), ("/other/chk-7", 2), (None, 1)])
def test_the_restored_checkpoint_is_found_by_its_path_where_numbers_repeat(
    tmp_path: Path, path: str | None, size: int
) -> None:
    story = CheckpointStory().submitted().running(2).completed(7, 5, state_bytes=1)
    story.submitted(8, job="next").running(9, job="next")
    story.completed(7, 10, job="next", state_bytes=2, path="/other/chk-7")
    story.submitted(12, job="last")
    story.at(13, Action.JOB_RESTORED, job="last", checkpoint=7, restored_at_ms=stamp(13), path=path)
    assert check(story.running(15, job="last"), tmp_path).counts["restored_bytes"] == size


@pytest.mark.parametrize(
    ("own", "path", "outcome"),
    [
        (True, None, Outcome.UNDECIDED),
        (True, "/job/chk-7", Outcome.UNDECIDED),
        (False, "/job/chk-7", Outcome.UNDECIDED),
        (False, "hdfs:///former/chk-7", Outcome.HELD),  # the one that the job was given
        (False, None, Outcome.HELD),
    ],
)
def test_a_checkpoint_of_another_job_does_not_replace_the_missing_one_of_its_number(
    tmp_path: Path, own: bool, path: str | None, outcome: Outcome
) -> None:
    """The completion of the restored checkpoint 7 may be missing. With checkpoints of its `own`,
    the job does not restore one of the job before it."""
    story = CheckpointStory().submitted(0.1, job="former")
    story.completed(7, 1, job="former", path="/former/chk-7").submitted(2).restored(7, 2.5)
    story.running(3)
    if own:
        story.completed(5, 5, path="/job/chk-5").completed(6, 8, path="/job/chk-6")
    story.failing(13)
    story.at(14, Action.JOB_RESTORED, job="job", checkpoint=7, restored_at_ms=stamp(14), path=path)
    result = check(story.running(15).completed(8, 20), tmp_path)
    assert result.outcome == outcome, result.summary
    missing = "checkpoint 7 was restored, which was not seen to complete"
    assert (missing in result.summary) == (outcome == Outcome.UNDECIDED)


def restarted_as_ordered(
    restored: int | None = 2,
    path: str = "hdfs:///chk-2",
    keeping: str | None = "checkpoint",
    given: str = "",
    last: str = "CHECKPOINT",
) -> CheckpointStory:
    """A `restart_job` at 11 s of a job with two checkpoints, the second one optionally a savepoint,
    and the next job, which runs at 18 s and completes a checkpoint."""
    story = CheckpointStory().submitted().running(2).completed(1, 5, path="hdfs:///chk-1")
    about = {"fault": "restart_job", "target": "the job", "step": 0}
    if last == "CHECKPOINT":
        story.completed(2, 10, path="hdfs:///chk-2")
    params = {} if keeping is None else {"params": {"from": keeping}}
    story.at(11, Action.FAULT_CALLED, **about, **params)
    if last != "CHECKPOINT":
        story.completed(2, 11.5, type=last, path="hdfs:///chk-2")
    story.at(12, Action.JOB_ENDED, job="job", state="CANCELED", cause="", ended_ms=stamp(12))
    story.submitted(14, job="next")
    if restored is not None:
        story.at(
            16,
            Action.JOB_RESTORED,
            job="next",
            checkpoint=restored,
            path=path,
            restored_at_ms=stamp(14.5),
        )
    story.running(18, job="next").completed(3, 20, job="next")
    seen = {"job": "next", "given": given, "restored_from": given}
    return story.at(
        21,
        Action.FAULT_IN_EFFECT,
        **about,
        called_ns=11 * 10**9,
        seen_ns=21 * 10**9,
        evidence={"the job": seen} if given else {},
    )  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("story", "outcome", "message"),
    [
        (restarted_as_ordered(), Outcome.HELD, ""),
        (restarted_as_ordered(given="hdfs://namenode/chk-2"), Outcome.HELD, ""),
        (restarted_as_ordered(keeping="savepoint", last="SAVEPOINT"), Outcome.HELD, ""),
        (restarted_as_ordered(1, "hdfs:///chk-1"), Outcome.VIOLATED, "older checkpoint restored"),
        (
            restarted_as_ordered(1, "hdfs:///chk-1", "savepoint", last="SAVEPOINT"),
            Outcome.VIOLATED,
            "older checkpoint restored",
        ),
        # A cancelled job does not leave an earlier savepoint as its state.
        (restarted_as_ordered(1, "hdfs:///chk-1", last="SAVEPOINT"), Outcome.HELD, ""),
        (restarted_as_ordered(1, "hdfs:///chk-1", keeping=None), Outcome.HELD, ""),
        (
            restarted_as_ordered(1, "hdfs:///chk-1", given="hdfs:///chk-2"),
            Outcome.UNDECIDED,
            "from hdfs:///chk-1, and the job was given hdfs:///chk-2",
        ),
    ],
)
def test_a_replacement_job_must_restore_what_the_replaced_job_left(
    story: CheckpointStory, outcome: Outcome, message: str, tmp_path: Path
) -> None:
    result = check(story, tmp_path)
    assert result.outcome == outcome
    assert message in result.summary


@pytest.mark.parametrize(
    ("keeping", "given", "outcome", "message"),
    [
        ("checkpoint", "", Outcome.VIOLATED, "nothing restored (start at 14.0 s)"),
        ("checkpoint", "hdfs:///chk-2", Outcome.UNDECIDED, "start at 14.0 s: no restore was seen"),
        (None, "", Outcome.UNDECIDED, "start at 14.0 s: no restore was seen"),
    ],
)
def test_a_replacement_job_that_restores_nothing_is_not_held(
    keeping: str | None, given: str, outcome: Outcome, message: str, tmp_path: Path
) -> None:
    """If the fault's evidence has a restore, the record contradicts itself."""
    result = check(restarted_as_ordered(None, keeping=keeping, given=given), tmp_path)
    assert result.outcome == outcome
    assert message in result.summary


def test_a_job_not_observed_running_may_restore_its_own_checkpoint(
    tmp_path: Path,
) -> None:
    """Only its start was from the given checkpoint."""
    story = CheckpointStory().submitted().running(2).completed(1, 5, path="hdfs:///chk-1")
    about = {"fault": "restart_job", "target": "the job", "step": 0}
    story.at(11, Action.FAULT_CALLED, **about, params={})
    seen = {"job": "next", "given": "hdfs:///chk-1", "restored_from": "hdfs:///chk-1"}
    story.submitted(14, job="next")
    story.at(
        15,
        Action.JOB_RESTORED,
        job="next",
        checkpoint=1,
        restored_at_ms=stamp(15),
        path="hdfs:///chk-1",
    )
    story.at(
        16,
        Action.FAULT_IN_EFFECT,
        **about,
        called_ns=11 * 10**9,
        seen_ns=16 * 10**9,
        evidence={"the job": seen},
    )
    story.completed(2, 17, job="next", path="hdfs:///chk-2")
    story.at(19, Action.JOB_FAILING, job="next", cause="lost", failed_ms=stamp(19))
    story.at(
        20,
        Action.JOB_RESTORED,
        job="next",
        checkpoint=2,
        restored_at_ms=stamp(20),
        path="hdfs:///chk-2",
    )
    assert check(story.running(21, job="next"), tmp_path).outcome == Outcome.HELD


def test_a_restore_replaced_before_it_was_observed_is_undecided(
    tmp_path: Path,
) -> None:
    """No checkpoint completed before the new job failed, so its first restore may never have been
    reported."""
    story = CheckpointStory().submitted().running(2).completed(1, 5)
    story.at(11, Action.FAULT_CALLED, fault="restart_job", step=0, params={})
    story.submitted(14, job="next").running(18, job="next")
    story.at(19, Action.JOB_FAILING, job="next", cause="lost", failed_ms=stamp(19))
    story.at(20, Action.JOB_RESTORED, job="next", checkpoint=1, restored_at_ms=stamp(20))
    story.running(21, job="next").completed(2, 22, job="next")
    result = check(story, tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "start at 14.0 s: no restore was seen" in result.summary


MAPPED = (
    "java.lang.IllegalStateException: Cannot map checkpoint/savepoint state for operator c0ffee"
)


def test_a_job_whose_state_cannot_be_mapped_is_found_with_the_engines_reason(
    tmp_path: Path,
) -> None:
    story = replaced(widest=0)
    story.at(15.5, Action.OUTPUT_SEEN, output="totals", end=10, grown=10)
    story.at(16.1, Action.JOB_FAILING, job="next", cause="it failed", failed_ms=stamp(15))
    story.at(16.2, Action.JOB_ENDED, job="next", state="FAILED", cause=MAPPED, ended_ms=stamp(15))

    result = check(story, tmp_path)

    (finding,) = result.findings
    assert (result.outcome, finding.what) == (Outcome.VIOLATED, "not restored")
    assert (finding.detail["reason"], finding.detail["written"]) == (MAPPED, 0)
    assert (result.counts["failed"], result.counts["written_by_failed"]) == (1, 0)
    assert MAPPED in result.summary


def test_records_written_by_a_failed_job_are_counted(tmp_path: Path) -> None:
    story = replaced(widest=0)
    story.at(16.2, Action.JOB_ENDED, job="next", state="FAILED", cause="", ended_ms=stamp(15))
    story.at(17, Action.OUTPUT_SEEN, output="totals", end=30, grown=20)
    result = check(story, tmp_path)
    assert result.counts["written_by_failed"] == 20
    assert result.findings[0].detail["reason"] == "the job is FAILED"


def test_a_restart_that_the_run_gave_up_on_did_not_come_back(tmp_path: Path) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).failing(9, cause="no slots")
    story.at(8.9, Action.OUTPUT_SEEN, output="totals", end=10, grown=10)
    story.restored(1, 10).at(11, Action.OUTPUT_SEEN, output="totals", end=15, grown=5)
    story.at(60, Action.NOT_RECOVERED, reason="recovery: not within 50 s")
    result = check(story, tmp_path)
    assert [f.what for f in result.findings] == ["did not come back"]
    assert result.findings[0].detail["reason"] == "no slots"
    assert result.counts["written_by_failed"] == 5, "without the records before its failure"


def test_a_job_that_was_cancelled_while_it_restarted_has_not_failed(tmp_path: Path) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).failing(9).restored(1, 10)
    story.at(11, Action.JOB_ENDED, job="job", state="CANCELED", cause="", ended_ms=stamp(11))
    result = check(story, tmp_path)
    assert (result.outcome, result.counts["failed"]) == (Outcome.UNDECIDED, 0)


def test_a_restart_after_a_failure_does_not_restore_a_savepoint(tmp_path: Path) -> None:
    newer_savepoint = restarted(restored=1, second={"type": "SAVEPOINT"})
    assert check(newer_savepoint, tmp_path).outcome == Outcome.HELD


def test_without_a_restart_there_is_no_verdict(tmp_path: Path) -> None:
    calm = CheckpointStory().submitted().running(2).completed(1, 5)
    result = check(calm, tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "no restart was seen, so nothing was restored"


@pytest.mark.parametrize(
    ("story", "message"),
    [
        (restarted(restored=7), "checkpoint 7 was restored, which was not seen to complete"),
        (CheckpointStory().submitted().running(2).completed(1, 5).failing(9), "no restore was"),
        (CheckpointStory().submitted().running(2).failing(9).running(12), "no checkpoint had"),
    ],
)
def test_a_restart_with_missing_evidence_is_undecided(
    story: CheckpointStory, message: str, tmp_path: Path
) -> None:
    result = check(story, tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert message in result.summary


def test_every_uncertainty_of_the_restarts_is_reported(tmp_path: Path) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).failing(9)
    assert check(story, tmp_path, within_s=60).summary == (
        "restart at 9.0 s: no restore was seen; restart at 9.0 s: not every task was seen to run "
        "again"
    )


def test_a_slow_restore_is_named_although_its_completion_was_not_observed(
    tmp_path: Path,
) -> None:
    result = check(restarted(restored=7), tmp_path, within_s=1)
    assert result.outcome == Outcome.VIOLATED
    assert result.summary.startswith(
        "too slow (restart at 13.0 s); checkpoint 7 restored; detected after"
    )


def test_the_slowest_restart_is_one_of_known_duration(tmp_path: Path) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5)
    story.failing(9).restored(1, 9.2).running(9.5).completed(2, 12).failing(20).restored(2, 21)
    slow = "too slow (restart at 9.0 s); 2 restarts, the slowest: checkpoint 1 "
    assert check(story, tmp_path, within_s=0.4).summary.startswith(slow)


@pytest.mark.parametrize("within_s", [None, 60])
def test_a_restart_that_never_ran_completely_is_undecided(
    tmp_path: Path, within_s: float | None
) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5).failing(9).restored(1, 10)
    late = check(story, tmp_path, within_s=within_s)
    assert late.outcome == Outcome.UNDECIDED
    assert "not every task was seen to run again" in late.summary


def test_an_older_history_without_stamps_is_judged_by_its_observations(tmp_path: Path) -> None:
    for restored, outcome in ((2, Outcome.HELD), (1, Outcome.VIOLATED)):
        story = CheckpointStory()
        for number in (1, 2):
            story.at(5.0 * number, Action.CHECKPOINT_TRIGGERED, checkpoint=number)
            story.at(5.0 * number + 1, Action.CHECKPOINT_COMPLETED, checkpoint=number)
        story.at(13, Action.JOB_FAILING, cause="lost")
        story.at(14, Action.JOB_RESTORED, checkpoint=restored).at(15, Action.JOB_RUNNING)
        assert check(story, tmp_path).outcome == outcome


def test_restarts_of_every_job_are_judged(tmp_path: Path) -> None:
    story = CheckpointStory().submitted().running(2).completed(1, 5)
    story.failing(9).restored(1, 10).running(11)
    story.submitted(12, job="next").restored(1, 13, job="next").running(15, job="next")
    counts = check(story, tmp_path).counts
    assert (counts["restarts"], counts["starts"], counts["restores"]) == (1, 1, 2)


@pytest.mark.parametrize(
    ("injected", "detect_s"),
    [
        ({"called_ns": 12 * 10**9, "seen_ns": 14 * 10**9}, 0.0),
        ({"called_ns": 11 * 10**9, "seen_ns": 12 * 10**9}, 1.0),
        ({"seen_ns": 12 * 10**9}, 1.0),
        ({"called_ns": 13_500_000_000, "seen_ns": 14 * 10**9}, None),
        ({"seen_ns": 14 * 10**9}, None),
    ],
)
def test_a_failure_counts_from_the_effect_of_the_fault_before_it(
    tmp_path: Path, injected: dict[str, int], detect_s: float | None
) -> None:
    """A failure reported before the verified effect has a detection time of zero."""
    story = CheckpointStory().submitted().running(2).completed(1, 5)
    story.at(14, Action.FAULT_IN_EFFECT, step=0, **injected)
    story.failing(13).restored(1, 14.5).running(16)
    assert check(story, tmp_path).counts["detect_s"] == detect_s


@pytest.mark.parametrize(
    ("reason", "shown"),
    [("recovery: not within 50 s", "recovery: not within 50 s"), (None, "it did not recover")],
)
def test_a_failure_without_a_cause_has_the_reason_of_the_failed_wait(
    tmp_path: Path, reason: str | None, shown: str
) -> None:
    story = CheckpointStory().at(0.5, Action.JOB_SUBMITTED, job="job")
    assert isinstance(story, CheckpointStory)
    story.completed(1, 5).at(9, Action.JOB_FAILING, job="job", failed_ms=stamp(9))
    story.at(11, Action.OUTPUT_SEEN, output="totals", end=15)
    story.at(60, Action.NOT_RECOVERED, reason=reason)
    result = check(story, tmp_path)
    (finding,) = result.findings
    assert (finding.what, finding.detail["cause"]) == ("did not come back", "")
    assert finding.detail["reason"] == shown
    assert (result.counts["written_by_failed"], result.counts["parallelism"]) == (0, None)


@pytest.mark.parametrize(
    ("counts", "outcome"),
    [
        ([None], Outcome.HELD),
        ([2], Outcome.HELD),
        ([2, 3], Outcome.HELD),
        ([1], Outcome.HELD),
        ([3], Outcome.UNDECIDED),
        ([2, 4], Outcome.UNDECIDED),
    ],
)
def test_every_restart_that_the_engine_counts_must_be_observed(
    tmp_path: Path, counts: list[int | None], outcome: Outcome
) -> None:
    """The first one is counted as 1; another JobManager begins again."""
    story = restarted()
    for number, count in enumerate(counts):
        story.at(13.5 + number / 10, Action.JOB_RESTARTING, job="job", restart=count)

    result = check(story, tmp_path)

    assert result.outcome == outcome, result.summary
    assert ("restarts were counted" in result.summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize("number", [0, -3])
def test_no_restart_has_a_number_below_one(tmp_path: Path, number: int) -> None:
    story = restarted()
    story.at(13.5, Action.JOB_RESTARTING, job="job", restart=number)
    result = check(story, tmp_path)
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        f"the restart at 13.5 s is recorded as number {number}",
    )
