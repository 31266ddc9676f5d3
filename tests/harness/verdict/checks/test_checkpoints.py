"""`checkpoints`: judged only under proven back-pressure; one changed value changes the outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.engines.flink.checkpoints import CheckpointWatch, subtasks_of
from streamquake.harness.verdict.checks.checkpoints import Checkpoints
from streamquake.reports.record.event import Action
from streamquake.reports.record.event_field import MissingField
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.cluster.engines.recorded import JOB, answer
from tests.harness.verdict.checkpoint_story import (
    PLACES,
    CheckpointStory,
    part,
    press,
    reported,
    stamp,
    unaligned,
)

COMPLETED = Action.CHECKPOINT_COMPLETED
LOST = "FailoverRegion is restarting."
EXCEEDED = (
    "org.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold. "
    "The latest checkpoint failed due to Checkpoint expired before completing."
)


@pytest.fixture
def pressed(tmp_path: Path) -> Path:
    """A run's folder, in which the source was back-pressured all the time."""
    press(tmp_path, 0.9, until_s=120)
    return tmp_path


def four(fourth: dict[str, Any] | None = None, **all_of_them: Any) -> CheckpointStory:
    """Four completed unaligned checkpoints of 100 to 400 ms, the last with changed values."""
    recorded = CheckpointStory().submitted(aligned_checkpoint_timeout=0)
    for number in (1, 2, 3, 4):
        changed = {**all_of_them, **((fourth or {}) if number == 4 else {})}
        recorded.completed(number, 10.0 * number, took_s=number / 10, **changed)
        recorded.files(number, 10.0 * number + 1, 7)
    return recorded


def check(story: CheckpointStory, folder: Path, **params: Any) -> CheckResult:
    return Checkpoints(**params).check(story.judged(folder))


def places(result: CheckResult) -> list[tuple[str, str]]:
    return [(finding.what, finding.where) for finding in result.findings]


ALL = {"type": "unaligned", "persisted": True, "within_ms": 250, "files_at_most": 7}


def test_checkpoints_completed_under_pressure_are_held_with_their_figures(
    pressed: Path,
) -> None:
    result = check(four(), pressed, **ALL)

    assert result.outcome == Outcome.HELD
    assert result.summary.startswith("4 of 4 checkpoints completed under back-pressure; median 250")
    expected = {
        "triggered": 4,
        "completed": 4,
        "failed": 0,
        "expired": 0,
        "set_aside": 0,
        "share_completed": 1.0,
        "median_ms": 250,
        "p95_ms": 400,
        "max_ms": 400,
        "unaligned": 4,
        "source_start_delay_ms": 5,
        "least_source_start_delay_ms": 5,
        "persisting_vertices": 2,
        "persisted_bytes": 4000,
        "state_bytes": 5000,
        "checkpointed_bytes": 5000,
        "files": 7,
        "files_bytes": 650,
        "metadata_bytes": 50,
        "start_delay_ms": 5,
        "alignment_ms": 1,
        "sync_ms": 2,
        "async_ms": 10,
        "barriers_ms": 6,
        "switch_ms": None,
        "taken_in_run": 4,
        "restarts_over_failures": 0,
        "pressure_ratio": pytest.approx(0.9),
        "shared_files": None,
        "shared_files_bytes": None,
        "shared_files_gone": None,
    }
    assert result.counts == expected


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"type": "CHECKPOINT"}, "aligned"),
        ({"subtasks": [part("v1", 0), part("v2", 0)]}, "aligned"),
        (
            {"persisted_bytes": 0, "subtasks": [part("v2", 0, unaligned=True)]},
            "no in-flight bytes persisted",
        ),
    ],
)
def test_one_changed_value_of_one_checkpoint_is_found(
    changed: dict[str, Any], found: str, pressed: Path
) -> None:
    result = check(four(changed), pressed, **ALL)

    assert result.outcome == Outcome.VIOLATED
    assert places(result) == [(found, "checkpoint 4")]
    assert result.summary.startswith(f"{found} (checkpoint 4); 4 of 4 checkpoints completed")


@pytest.mark.parametrize("name", ["vertex", "alignment_ms", "unaligned"])
def test_a_report_of_a_subtask_without_a_field_is_named(name: str, pressed: Path) -> None:
    story = four()
    event = [e for e in story.history() if e.action == COMPLETED][3]
    del event.value["subtasks"][1][name]
    with pytest.raises(MissingField, match=f"recorded without its `{name}`"):
        check(story, pressed)


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"within_ms": 249}, ("too slow", "checkpoint 4")),
        ({"files_at_most": 6}, ("too many files", "checkpoint 1")),
        ({"type": "aligned"}, ("unaligned", "checkpoint 1")),
        ({"persisted": False}, ("in-flight bytes persisted", "checkpoint 1")),
    ],
)
def test_one_changed_requirement_is_not_met(
    params: dict[str, Any], found: tuple[str, str], pressed: Path
) -> None:
    result = check(four(), pressed, **{**ALL, **params})

    assert result.outcome == Outcome.VIOLATED
    assert places(result)[0] == found
    assert {what for what, _ in places(result)} == {found[0]}


def test_an_expired_checkpoint_names_the_missing_subtasks(pressed: Path) -> None:
    story = four().failed(5, 50, took_s=8)
    assert check(story, pressed, completed_share=0.8).outcome == Outcome.HELD

    result = check(story, pressed)

    assert result.outcome == Outcome.VIOLATED
    assert result.summary.startswith("expired (checkpoint 5); 4 of 5 checkpoints completed")
    assert (result.counts["expired"], result.counts["failed"]) == (1, 1)
    assert result.counts["share_completed"] == pytest.approx(0.8)
    detail = result.findings[0].detail
    assert detail["acknowledged"] == "2 of 4"
    assert detail["missing"] == ["map/0", "map/1"]
    assert detail["slowest"] == "source/0"
    assert detail["duration_ms"] == 8000


def test_a_control_in_which_nothing_completes_is_violated(pressed: Path) -> None:
    story = CheckpointStory().submitted()
    for number in (1, 2, 3):
        story.failed(number, 12.0 * number, took_s=8)

    result = check(story, pressed, type="unaligned")

    assert result.outcome == Outcome.VIOLATED
    assert places(result) == [("expired", "checkpoint 1"), ("expired", "checkpoint 2")]
    assert "0 of 3 checkpoints completed under back-pressure" in result.summary
    assert result.counts["median_ms"] is None


def test_the_smallest_share_needs_one_completed_checkpoint(pressed: Path) -> None:
    story = CheckpointStory().submitted()
    for number in (1, 2, 3):
        story.failed(number, 12.0 * number, took_s=8)

    result = check(story, pressed, completed_share=0.001, type="aligned")

    assert result.outcome == Outcome.VIOLATED
    assert "0 of 3 checkpoints completed" in result.summary


@pytest.mark.parametrize("reason", [LOST, "Checkpoint was declined (tasks not ready)"])
def test_checkpoints_of_ended_tasks_and_in_progress_are_set_aside(
    reason: str, pressed: Path
) -> None:
    result = check(four().failed(5, 50, reason=reason).triggered(6, 59), pressed)

    assert result.outcome == Outcome.HELD
    assert result.counts["set_aside"] == 2
    assert result.counts["share_completed"] == 1.0


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("Checkpoint was declined.", "declined"),
        ("Asynchronous task checkpoint failed.", "asynchronous part failed"),
        ("Failure to finalize checkpoint.", "not finalized"),
    ],
)
def test_failures_caused_by_the_checkpoint_count(reason: str, word: str, pressed: Path) -> None:
    result = check(four().failed(5, 50, reason=reason), pressed)

    assert places(result) == [(word, "checkpoint 5")]
    assert (result.counts["failed"], result.counts["expired"]) == (1, 0)


def test_without_proven_pressure_there_is_no_verdict(tmp_path: Path) -> None:
    unsampled_vertices = check(four(), tmp_path, **ALL)
    press(tmp_path, 0.4)
    low = check(four(), tmp_path, **ALL)

    assert unsampled_vertices.outcome == low.outcome == Outcome.UNDECIDED
    assert low.counts["triggered"] == 0
    assert low.summary == (
        "0 of 4 checkpoints completed or failed under proven back-pressure, and at least 3 are "
        "needed to prove anything; the highest ratio is 0.40, in source, and 0.5 is required"
    )
    assert check(four(), tmp_path, **ALL, pressure_ratio=0.4).outcome == Outcome.HELD
    assert check(four(), tmp_path, **ALL, under_pressure=False).outcome == Outcome.HELD


def test_only_checkpoints_taken_under_pressure_are_judged(tmp_path: Path) -> None:
    press(tmp_path, 0.9, until_s=33)
    expired = {"type": "CHECKPOINT", "persisted_bytes": 0}

    result = check(four(expired), tmp_path, **ALL)

    assert result.outcome == Outcome.HELD
    assert (result.counts["triggered"], result.counts["taken_in_run"]) == (3, 4)


def test_a_checkpoint_in_progress_is_under_pressure_until_the_end_of_the_run(
    tmp_path: Path,
) -> None:
    press(tmp_path, 0.9, from_s=35)
    result = check(CheckpointStory().triggered(1, 30).triggered(2, 60), tmp_path)
    assert (result.counts["triggered"], result.counts["set_aside"]) == (2, 2)
    assert result.outcome == Outcome.UNDECIDED


def test_too_few_checkpoints_prove_nothing(pressed: Path) -> None:
    assert check(four(), pressed, min_checkpoints=5).outcome == Outcome.UNDECIDED
    none = check(CheckpointStory().submitted(), pressed)
    assert none.outcome == Outcome.UNDECIDED
    assert none.summary == "no checkpoint was triggered and ended"


def phases(async_ms: int) -> dict[str, Any]:
    return {"subtasks": [part("v2", 0, unaligned=True, async_ms=async_ms)]}


def disturbed(heal_s: float | None = 40.0) -> CheckpointStory:
    """Five checkpoints: a fault slows those at 20 and 30 s; the others are quick."""
    recorded = CheckpointStory().submitted()
    recorded.completed(1, 10, **phases(10))
    recorded.injected("delay_checkpoint", 15, heal_s)
    recorded.completed(2, 20, took_s=3, **phases(2900)).completed(3, 30, took_s=3, **phases(2900))
    return recorded.completed(4, 45, **phases(10)).completed(5, 50, **phases(10))


def test_only_checkpoints_during_the_named_fault_are_judged(pressed: Path) -> None:
    whole = check(disturbed(), pressed, within_ms=1000)
    assert whole.outcome == Outcome.HELD, "most checkpoints of the run were quick"
    assert whole.counts["async_ms"] == 10

    params = {"fault": "delay_checkpoint", "min_checkpoints": 2}
    assert check(disturbed(), pressed, **params).outcome == Outcome.HELD
    during = check(disturbed(), pressed, **params, within_ms=1000)

    assert during.outcome == Outcome.VIOLATED
    assert places(during) == [("too slow", "checkpoint 2")]
    assert (during.counts["completed"], during.counts["taken_in_run"]) == (2, 5)
    assert (during.counts["async_ms"], during.counts["sync_ms"]) == (2900, 2)


def test_a_checkpoint_in_progress_at_the_heal_does_not_count(pressed: Path) -> None:
    params = {"fault": "delay_checkpoint", "min_checkpoints": 1}
    for heal_s, judged in ((33.5, 2), (33.0, 2), (32.5, 1)):
        result = check(disturbed(heal_s), pressed, **params)
        assert (result.outcome, result.counts["triggered"]) == (Outcome.HELD, judged)


@pytest.mark.parametrize(
    ("last_seen_s", "failures", "outcome"),
    [
        (8, 0, Outcome.UNDECIDED),
        (42, 0, Outcome.HELD),
        (42, 1, Outcome.UNDECIDED),  # it failed before the fault was found ended
        (58, 1, Outcome.VIOLATED),
    ],
)
@pytest.mark.parametrize("under_pressure", [True, False])
def test_a_fault_that_ended_early_acted_until_it_was_last_verified(
    last_seen_s: float, failures: int, outcome: Outcome, under_pressure: bool, pressed: Path
) -> None:
    """It was found ended at 59 s."""
    recorded = CheckpointStory().submitted().injected("slow_link", 6)
    for number in (1, 2, 3, 4):
        recorded.completed(number, 10.0 * number)
    for number in range(5, 5 + failures):
        recorded.failed(number, 10.0 * number, took_s=5)
    about: dict[str, Any] = {"step": 0, "fault": "slow_link"}
    seen_ns = int(last_seen_s * 1e9)
    recorded.at(last_seen_s, Action.FAULT_STILL_IN_EFFECT, **about, seen_ns=seen_ns)
    ended = {"seen_ns": 59 * 10**9, "last_seen_ns": seen_ns, "reason": "gone"}
    recorded.at(59, Action.FAULT_ENDED_EARLY, **about, **ended)

    result = check(recorded, pressed, fault="slow_link", under_pressure=under_pressure)

    assert result.outcome == outcome, result.summary


def test_a_fault_that_acts_again_does_not_prove_that_it_acted_in_between(pressed: Path) -> None:
    """It was last verified at 42 s and found ended at 59 s; a checkpoint failed at 55 s."""
    recorded = CheckpointStory().submitted().injected("slow_link", 6)
    for number in (1, 2, 3, 4):
        recorded.completed(number, 10.0 * number)
    recorded.failed(5, 50, took_s=5)
    about: dict[str, Any] = {"step": 0, "fault": "slow_link"}
    recorded.at(42, Action.FAULT_STILL_IN_EFFECT, **about, seen_ns=42 * 10**9)
    ended = {"seen_ns": 59 * 10**9, "last_seen_ns": 42 * 10**9, "reason": "gone"}
    recorded.at(59, Action.FAULT_ENDED_EARLY, **about, **ended)
    recorded.injected("slow_link", 70, 100, step=1)

    result = check(recorded, pressed, fault="slow_link")

    assert result.outcome == Outcome.UNDECIDED, result.summary
    assert "whether slow_link had ended early before is not known" in result.summary


def test_the_subtask_with_the_latest_last_barrier_gives_the_wait_for_barriers(
    pressed: Path,
) -> None:
    waits = [
        part("v2", 0, start_delay_ms=900, alignment_ms=10),
        part("v2", 1, start_delay_ms=300, alignment_ms=800),
    ]
    counts = check(four(subtasks=waits), pressed).counts
    assert (counts["start_delay_ms"], counts["alignment_ms"]) == (900, 800)
    assert counts["barriers_ms"] == 1100
    assert check(four(subtasks=None), pressed).counts["barriers_ms"] is None


def test_a_fault_that_was_never_healed_lasts_to_the_end(pressed: Path) -> None:
    result = check(disturbed(heal_s=None), pressed, fault="delay_checkpoint")
    assert (result.outcome, result.counts["completed"]) == (Outcome.HELD, 4)


@pytest.mark.parametrize(
    ("triggered_s", "skewed", "judged"), [(9.2, False, 0), (10, False, 1), (9.2, True, 1)]
)
def test_the_stamp_of_its_trigger_tells_whether_a_checkpoint_began_during_the_fault(
    tmp_path: Path, triggered_s: float, skewed: bool, judged: int
) -> None:
    """Its trigger is observed after the effect. A moved clock has no meaning, so then the
    observation counts."""
    story = CheckpointStory().submitted().running(2).injected("slow_operator", 10, 60)
    about = {"job": "job", "checkpoint": 1, "trigger_ms": stamp(triggered_s)}
    story.at(10.2, Action.CHECKPOINT_TRIGGERED, **about, type="CHECKPOINT")
    ended = {"duration_ms": 300, "persisted_bytes": 0, "subtasks": unaligned()}
    story.at(10.6, Action.CHECKPOINT_COMPLETED, **about, **ended, type="UNALIGNED_CHECKPOINT")
    story.completed(2, 70)  # its trigger is observed at once, after the heal
    if skewed:
        story.at(1, Action.FAULT_CALLED, step=1, fault="clock_skew")
    params = {"under_pressure": False, "min_checkpoints": 1}
    assert check(story, tmp_path, fault="slow_operator", **params).counts["completed"] == judged


def test_without_the_effect_of_the_named_fault_there_is_no_verdict(pressed: Path) -> None:
    other = check(disturbed(), pressed, fault="slow_operator")
    assert (other.outcome, other.summary) == (Outcome.UNDECIDED, "slow_operator was not in effect")
    assert check(disturbed(), pressed, fault="delay_checkpoint").outcome == Outcome.UNDECIDED


def test_figures_show_whether_shared_files_are_deleted_or_accumulate(
    pressed: Path,
) -> None:
    def listed(*listings: str) -> CheckpointStory:
        recorded = CheckpointStory().submitted()
        for number, names in enumerate(listings, start=1):
            recorded.completed(number, 10.0 * number)
            recorded.files(number, 10.0 * number + 1, 1, shared=names)
        return recorded

    cleaned = check(listed("ab", "abcd", "cde"), pressed).counts
    assert (cleaned["shared_files"], cleaned["shared_files_gone"]) == (3, 2)
    assert cleaned["shared_files_bytes"] == 600
    growing = check(listed("ab", "abcd", "abcde"), pressed).counts
    assert (growing["shared_files"], growing["shared_files_gone"]) == (5, 0)
    none = check(listed("", "", ""), pressed).counts
    assert (none["shared_files"], none["shared_files_gone"]) == (0, 0)


def test_savepoints_are_no_checkpoints(pressed: Path) -> None:
    result = check(four().completed(5, 50, type="SAVEPOINT", persisted_bytes=0), pressed, **ALL)

    assert result.outcome == Outcome.HELD
    assert result.counts["taken_in_run"] == 4


@pytest.mark.parametrize("end", [{"type": "SAVEPOINT"}, {}])
def test_a_failed_savepoint_is_no_failed_checkpoint(end: dict[str, Any], pressed: Path) -> None:
    """Also where only its trigger has its type."""
    about = {"job": "job", "checkpoint": 5}
    story = four()
    story.at(50, Action.CHECKPOINT_TRIGGERED, **about, type="SAVEPOINT")
    reason = "Checkpoint was declined."
    story.at(51, Action.CHECKPOINT_FAILED, **about, **end, reason=reason)

    assert check(story, pressed).outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("type", "the type of a completed checkpoint is not recorded"),
        ("persisted_bytes", "how many in-flight bytes"),
        ("duration_ms", "how long a completed checkpoint took"),
    ],
)
def test_values_missing_in_an_older_history_are_undecided(
    key: str, text: str, pressed: Path
) -> None:
    result = check(four({key: None}), pressed, **ALL)

    assert result.outcome == Outcome.UNDECIDED
    assert text in result.summary


def test_all_that_is_missing_is_told(pressed: Path) -> None:
    result = check(four({"type": None, "duration_ms": None}), pressed, **ALL)
    assert result.summary == (
        "the type of a completed checkpoint is not recorded; "
        "how long a completed checkpoint took is not recorded"
    )


def test_a_run_without_any_event_is_undecided(pressed: Path) -> None:
    result = check(CheckpointStory(), pressed)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "no checkpoint was triggered and ended"


def test_an_older_history_without_subtasks_is_judged_by_the_reported_type(pressed: Path) -> None:
    assert check(four(subtasks=None), pressed, **ALL).outcome == Outcome.HELD
    changed = check(four({"type": "CHECKPOINT"}, subtasks=None), pressed, **ALL)
    assert places(changed) == [("aligned", "checkpoint 4")]


def test_files_that_were_not_listed_are_undecided(pressed: Path) -> None:
    story = CheckpointStory().submitted()
    for number in (1, 2, 3, 4):
        story.completed(number, 10.0 * number)
    story.files(1, 50, 3).files(2, 50, 3)

    result = check(story, pressed, files_at_most=7)

    assert result.outcome == Outcome.UNDECIDED
    assert "the files of 2 of 4 completed checkpoints were listed" in result.summary


@pytest.mark.parametrize(
    ("path", "files", "outcome"),
    [
        ("hdfs:///chk-{}", {"_metadata": 50}, Outcome.HELD),
        ("/chk-{}", {}, Outcome.UNDECIDED),
        ("/chk-{}", {"file": 50}, Outcome.UNDECIDED),  # its metadata is deleted, others may be too
        ("/other/chk-{}", {"_metadata": 50}, Outcome.UNDECIDED),
    ],
)
def test_a_listing_that_cannot_be_of_the_whole_checkpoint_proves_nothing(
    path: str, files: dict[str, int], outcome: Outcome, pressed: Path
) -> None:
    story = CheckpointStory().submitted()
    for number in (1, 2, 3, 4):
        story.completed(number, 10.0 * number)
        about = {"job": "job", "checkpoint": number, "path": path.format(number)}
        story.at(10.0 * number + 1, Action.CHECKPOINT_FILES, **about, files=files)

    assert check(story, pressed, files_at_most=7).outcome == outcome


@pytest.mark.parametrize(("listed", "outcome"), [(9, Outcome.UNDECIDED), (10, Outcome.HELD)])
def test_files_of_half_of_the_checkpoints_must_be_listed(
    pressed: Path, listed: int, outcome: Outcome
) -> None:
    """The folder of a checkpoint with many files may be gone before its listing ends."""
    story = CheckpointStory().submitted()
    for number in range(1, 21):
        story.completed(number, 2.0 * number)
    for number in range(1, listed + 1):
        story.files(number, 3, 3)

    assert check(story, pressed, files_at_most=7).outcome == outcome


@pytest.mark.parametrize(
    ("total", "of_parts", "listed", "text"),
    [
        (0, 1000, 4, "hold 0 in-flight bytes, and its subtasks hold 4,000"),
        (4000, 0, 4, "hold 4,000 in-flight bytes, and its subtasks hold 0"),
        (4001, 1000, 4, "hold 4,001 in-flight bytes, and its subtasks hold 4,000"),
        (2999, 1000, 3, "hold 2,999 in-flight bytes, and its subtasks hold 3,000"),
        (3000, 1000, 3, ""),
        (4000, 0, 3, ""),  # the subtask that is missing may hold them
        (4000, 0, 0, ""),
        (4000, 1000, 4, ""),
    ],
)
@pytest.mark.parametrize("persisted", [True, False])
def test_in_flight_bytes_that_its_subtasks_contradict_are_undecided(
    persisted: bool, total: int, of_parts: int, listed: int, text: str, pressed: Path
) -> None:
    parts = [part(*place, unaligned=True, persisted_bytes=of_parts) for place in PLACES][:listed]
    story = CheckpointStory().submitted(aligned_checkpoint_timeout=0)
    for number in (1, 2, 3):
        story.completed(number, 10.0 * number, persisted_bytes=total, subtasks=parts)
        acknowledged(story, number, 4)

    result = check(story, pressed, persisted=persisted)
    agrees = Outcome.HELD if persisted else Outcome.VIOLATED
    assert result.outcome == (Outcome.UNDECIDED if text else agrees)
    assert text in result.summary


@pytest.mark.parametrize(
    ("job", "submitted", "outcome"),
    [
        ("job", ["job"], Outcome.HELD),
        ("other", ["job"], Outcome.UNDECIDED),
        ("other", ["job", "other"], Outcome.HELD),
        ("other", [None], Outcome.HELD),  # an old record has no ids of jobs
        ("other", [], Outcome.HELD),
        (None, ["job"], Outcome.HELD),
    ],
)
def test_checkpoints_of_a_job_that_was_not_submitted_are_undecided(
    job: Any, submitted: list[Any], outcome: Outcome, pressed: Path
) -> None:
    story = CheckpointStory()
    for each in submitted:
        story.submitted(job=each)
    for number in (1, 2, 3):
        story.completed(number, 10.0 * number, job=job)

    result = check(story, pressed)
    assert result.outcome == outcome
    message = "checkpoint 1 is of a job whose submission is not recorded"
    assert (message == result.summary) == (outcome == Outcome.UNDECIDED)


def test_the_subtask_and_the_phase_that_took_longest_are_named(pressed: Path) -> None:
    quick = check(four(), pressed)
    assert "slowest checkpoint 4 at source/0: asynchronous part 10 ms" in quick.summary

    slow = unaligned(part("v2", 1, start_delay_ms=3200, unaligned=True))
    result = check(four({"subtasks": slow}), pressed)

    assert "slowest checkpoint 4 at map/1: start delay 3,200 ms" in result.summary
    assert "asynchronous part dominates (median 10 ms)" in result.summary
    everywhere = check(four(subtasks=slow), pressed)
    assert "start delay dominates (median 3,200 ms)" in everywhere.summary
    assert everywhere.counts["start_delay_ms"] == 3200
    assert everywhere.counts["source_start_delay_ms"] == 5


def test_alignment_is_the_slow_phase_of_an_unaligned_part_that_waits_for_barriers(
    pressed: Path,
) -> None:
    waits = unaligned(part("v2", 0, alignment_ms=900, async_ms=950, unaligned=True))
    result = check(four(subtasks=waits), pressed)
    assert "alignment dominates (median 900 ms)" in result.summary


def switched(delay_ms: int, kind: str = "UNALIGNED_CHECKPOINT") -> CheckpointStory:
    """Four checkpoints of a job whose aligned ones time out after 3 s."""
    recorded = CheckpointStory().submitted(aligned_checkpoint_timeout=3000)
    parts = unaligned(part("v2", 0, start_delay_ms=delay_ms, unaligned=kind != "CHECKPOINT"))
    for number in (1, 2, 3, 4):
        recorded.completed(number, 10.0 * number, took_s=4, type=kind, subtasks=parts)
    return recorded


def test_a_switch_long_after_the_time_out_is_late(pressed: Path) -> None:
    soon = check(switched(3170), pressed, switch_within_ms=500)
    late = check(switched(3600), pressed, switch_within_ms=500)
    never = check(switched(9000, "CHECKPOINT"), pressed, switch_within_ms=500)

    assert soon.outcome == Outcome.HELD
    assert soon.counts["switch_ms"] == 171
    assert late.outcome == Outcome.VIOLATED
    assert places(late)[0] == ("switched late", "checkpoint 1")
    assert late.findings[0].detail["subtask"] == "map/0"
    assert places(never)[0] == ("not switched", "checkpoint 1")


@pytest.mark.parametrize(
    ("parts", "took_s", "outcome"),
    [
        (None, 9, Outcome.UNDECIDED),
        (unaligned()[:3], 9, Outcome.UNDECIDED),  # the subtask that is missing may have been late
        (unaligned(), 9, Outcome.HELD),
        (None, 3.5, Outcome.HELD),  # it completed before a barrier could be late
    ],
)
def test_a_checkpoint_whose_last_barrier_is_not_known_may_have_switched_late(
    parts: list[dict[str, Any]] | None, took_s: float, outcome: Outcome, pressed: Path
) -> None:
    story = switched(3170).completed(5, 50, took_s=took_s, subtasks=parts)
    assert check(story, pressed, switch_within_ms=500).outcome == outcome


@pytest.mark.parametrize(
    ("listed", "outcome"),
    [(4, Outcome.HELD), (3, Outcome.UNDECIDED), (0, Outcome.UNDECIDED)],
)
def test_a_switch_is_seen_only_where_all_subtasks_are_recorded(
    listed: int, outcome: Outcome, pressed: Path
) -> None:
    """The subtasks that are listed may all be sources, which get no barriers from others."""
    story = CheckpointStory().submitted(aligned_checkpoint_timeout=3000)
    parts = unaligned(part("v2", 1, start_delay_ms=3170, unaligned=True))[:listed]
    for number in (1, 2, 3):
        story.completed(number, 10.0 * number, took_s=3.2, subtasks=parts)
        acknowledged(story, number, 4)

    result = check(story, pressed, switch_within_ms=500)
    assert result.outcome == outcome
    message = "no checkpoint was seen to switch from aligned to unaligned at a time-out, of those"
    assert (message in result.summary) == (outcome == Outcome.UNDECIDED)
    assert result.counts["switch_ms"] == (171 if outcome == Outcome.HELD else None)


@pytest.mark.parametrize(
    ("longest", "contradicted"),
    [
        ({"start_delay_ms": 3170, "alignment_ms": 1}, ""),
        ({"start_delay_ms": 3171}, "start delay of checkpoint 5 is recorded as 3,171 ms"),
        ({"alignment_ms": 9000}, "alignment of checkpoint 5 is recorded as 9,000 ms"),
        ({"async_ms": 9000}, ""),  # of no concern for the barriers
    ],
)
def test_a_longer_wait_for_barriers_than_any_of_its_subtasks_is_undecided(
    longest: dict[str, Any], contradicted: str, pressed: Path
) -> None:
    parts = unaligned(part("v2", 0, start_delay_ms=3170, unaligned=True))
    story = switched(3170).completed(5, 50, took_s=3.3, subtasks=parts, **longest)

    result = check(story, pressed, switch_within_ms=500)
    assert result.outcome == (Outcome.UNDECIDED if contradicted else Outcome.HELD)
    assert contradicted in result.summary
    assert check(story, pressed).outcome == Outcome.HELD


def test_a_switch_is_not_judged_where_a_time_out_is_not_known(pressed: Path) -> None:
    late = unaligned(part("v2", 0, start_delay_ms=3170, unaligned=True))
    story = switched(3170).submitted(45, job="other")
    story.completed(5, 50, took_s=4, job="other", subtasks=late)

    result = check(story, pressed, switch_within_ms=500)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "whether checkpoint 5 switched in time is not recorded"


def test_a_checkpoint_that_began_unaligned_need_not_switch(pressed: Path) -> None:
    story = switched(3170).submitted(45, job="unaligned", aligned_checkpoint_timeout=0)
    late = unaligned(part("v2", 0, start_delay_ms=9000, unaligned=True))
    story.completed(5, 50, took_s=10, job="unaligned", subtasks=late)

    assert check(story, pressed, switch_within_ms=500).outcome == Outcome.HELD


@pytest.mark.parametrize(("last_ms", "outcome"), [(500, Outcome.HELD), (501, Outcome.UNDECIDED)])
def test_a_time_out_that_is_not_known_may_be_zero(
    last_ms: int, outcome: Outcome, pressed: Path
) -> None:
    parts = [part(*place, start_delay_ms=last_ms - 1) for place in PLACES]
    story = switched(3170).submitted(45, job="other")
    story.completed(5, 50, took_s=4, job="other", type="CHECKPOINT", subtasks=parts)
    acknowledged(story, 5, 4)

    assert check(story, pressed, switch_within_ms=500).outcome == outcome


def test_examples_of_every_class_are_given(pressed: Path) -> None:
    """Another class than that of the first examples must not stay hidden: the expected outcome
    names classes."""
    story = four()
    for number in (5, 6, 7):
        story.failed(number, 7.0 * number, took_s=0.5)
    story.failed(8, 56, took_s=0.5, reason="Asynchronous task checkpoint failed.")
    failures = check(story, pressed)
    assert places(failures) == [
        ("expired", "checkpoint 5"),
        ("expired", "checkpoint 6"),
        ("asynchronous part failed", "checkpoint 8"),
    ]

    late = unaligned(part("v2", 0, start_delay_ms=9000, unaligned=True))
    aligned = [part(*place, alignment_ms=9000) for place in PLACES]
    story = CheckpointStory().submitted(aligned_checkpoint_timeout=3000)
    for number in (1, 2, 3):
        story.completed(number, 10.0 * number, took_s=9, subtasks=late)
    story.completed(4, 40, took_s=9, subtasks=aligned, type="CHECKPOINT")
    switches = check(story, pressed, switch_within_ms=500)
    assert places(switches) == [
        ("switched late", "checkpoint 1"),
        ("switched late", "checkpoint 2"),
        ("not switched", "checkpoint 4"),
    ]


def test_a_switch_that_was_not_due_or_not_needed_is_undecided(pressed: Path) -> None:
    for story in (four(), switched(100, "CHECKPOINT")):
        result = check(story, pressed, switch_within_ms=500)
        assert result.outcome == Outcome.UNDECIDED
        assert "no checkpoint was seen to switch" in result.summary


def test_a_share_of_another_type_may_be_allowed(pressed: Path) -> None:
    one = {"type": "CHECKPOINT", "persisted_bytes": 0, "subtasks": [part("v1", 0)]}
    ask = {"type": "unaligned", "persisted": True}

    assert check(four(fourth=one), pressed, **ask).outcome == Outcome.VIOLATED
    assert check(four(fourth=one), pressed, **ask, typed_share=0.75).outcome == Outcome.HELD
    assert check(four(fourth=one), pressed, **ask, typed_share=0.8).outcome == Outcome.VIOLATED


def fifth_aligned(took_s: float) -> CheckpointStory:
    """Four checkpoints that switched after 3 s, and a fifth aligned one."""
    recorded = switched(3100)
    recorded.completed(
        5,
        50.0,
        took_s=took_s,
        type="CHECKPOINT",
        persisted_bytes=0,
        subtasks=[part(*place) for place in (("v1", 0), ("v2", 0))],
    )
    return recorded


def test_a_checkpoint_aligned_before_its_time_out_need_not_be_unaligned(pressed: Path) -> None:
    in_time = check(fifth_aligned(2.9), pressed, type="unaligned", persisted=True)
    too_late = check(fifth_aligned(3.1), pressed, type="unaligned", persisted=True)

    assert in_time.outcome == Outcome.HELD
    assert in_time.counts["unaligned"] == 4
    assert too_late.outcome == Outcome.VIOLATED
    assert ("aligned", "checkpoint 5") in places(too_late)
    assert ("no in-flight bytes persisted", "checkpoint 5") in places(too_late)


@pytest.mark.parametrize(
    ("config", "last_ms", "outcome"),
    [
        ({"aligned_checkpoint_timeout": 3000}, 2900, Outcome.HELD),
        ({}, 2900, Outcome.UNDECIDED),
        (None, 2900, Outcome.UNDECIDED),  # the submission is not recorded
        # The other checkpoints had switched after 3.1 s: no time-out allows one to align later.
        ({}, 3200, Outcome.VIOLATED),
    ],
)
def test_an_aligned_checkpoint_is_not_judged_where_its_time_out_is_not_known(
    config: dict[str, Any] | None, last_ms: int, outcome: Outcome, pressed: Path
) -> None:
    story = CheckpointStory()
    if config is not None:
        story.submitted(**config)
    late = unaligned(part("v2", 0, start_delay_ms=3100, unaligned=True))
    for number in (1, 2, 3):
        story.completed(number, 10.0 * number, took_s=3.2, subtasks=late)
        acknowledged(story, number, 4)
    aligned = [part(*place, start_delay_ms=last_ms) for place in PLACES]
    story.completed(4, 40, took_s=5, type="CHECKPOINT", persisted_bytes=0, subtasks=aligned)
    acknowledged(story, 4, 4)

    result = check(story, pressed, type="unaligned", persisted=True)
    assert result.outcome == outcome
    message = "the time-out before which checkpoint 4 may have aligned is not recorded"
    assert (result.summary == message) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize("switched_ms", [(3100, 4000, 4000), (4000, 4000, 3100)])
def test_the_soonest_switch_bounds_a_time_out_that_is_not_known(
    switched_ms: tuple[int, ...], pressed: Path
) -> None:
    story = CheckpointStory().submitted()
    for number, delay_ms in enumerate(switched_ms, start=1):
        late = unaligned(part("v2", 0, start_delay_ms=delay_ms, unaligned=True))
        story.completed(number, 10.0 * number, took_s=5, subtasks=late)
        acknowledged(story, number, 4)
    aligned = [part(*place, start_delay_ms=3200) for place in PLACES]
    story.completed(4, 40, took_s=5, type="CHECKPOINT", subtasks=aligned)
    acknowledged(story, 4, 4)

    assert check(story, pressed, type="unaligned").outcome == Outcome.VIOLATED


@pytest.mark.parametrize(("last_ms", "outcome"), [(3000, Outcome.HELD), (3001, Outcome.VIOLATED)])
def test_a_checkpoint_with_barriers_in_time_may_take_longer_to_write(
    pressed: Path, last_ms: int, outcome: Outcome
) -> None:
    """As in a recorded checkpoint that was in progress when the slow operator was healed: its last
    barrier arrived after 2,992 ms, and its state was written after 4,186 ms."""
    recorded = switched(3100)
    parts = [
        *(part(*place) for place in PLACES[:3]),
        part(*PLACES[3], start_delay_ms=1000, alignment_ms=last_ms - 1000),
    ]
    recorded.completed(5, 50.0, took_s=4.186, type="CHECKPOINT", persisted_bytes=0, subtasks=parts)

    assert check(recorded, pressed, type="unaligned", persisted=True).outcome == outcome


def test_the_switch_is_unknown_when_all_aligned_in_time(pressed: Path) -> None:
    recorded = CheckpointStory().submitted(aligned_checkpoint_timeout=3000)
    for number in (1, 2, 3, 4):
        recorded.completed(number, 10.0 * number, took_s=1, type="CHECKPOINT", persisted_bytes=0)

    result = check(recorded, pressed, type="unaligned")

    assert result.outcome == Outcome.UNDECIDED
    assert "aligned before the time-out at which it would have switched" in result.summary


def test_answers_of_flinks_rest_interface_are_parsed(pressed: Path) -> None:
    """A recording with one completed checkpoint and others that a restart aborted."""
    recorded = CheckpointStory()
    vertices = {v["id"]: v for v in answer("job")["vertices"]}
    recorded.at(0.5, Action.JOB_SUBMITTED, job=JOB, vertices=[*vertices.values()], config={})
    details = {v: answer(f"checkpoint-vertex-{n}") for n, v in enumerate(vertices)}
    for observation in CheckpointWatch(JOB).poll(answer("checkpoints")):
        more = {"subtasks": subtasks_of(details)} if observation.action == COMPLETED else {}
        recorded.at(2, observation.action, **observation.value, **more)

    result = check(recorded, pressed, type="aligned", persisted=False, min_checkpoints=1)

    assert result.outcome == Outcome.HELD
    assert result.counts["completed"] == 1
    assert result.counts["set_aside"] == result.counts["triggered"] - 1 > 0  # type: ignore[operator]
    assert result.counts["median_ms"] == 1626
    names = {vertex["name"] for vertex in vertices.values()}
    assert any(f"slowest checkpoint 1 at {name}/" in result.summary for name in names)


def looping(*restored: int, cause: str = EXCEEDED) -> CheckpointStory:
    recorded = four()
    for change, number in enumerate(restored):
        at_s = 45.0 + 5 * change
        recorded.failing(at_s, cause).restored(number, at_s + 1).running(at_s + 2)
    return recorded


def test_three_restarts_from_one_checkpoint_are_a_loop(pressed: Path) -> None:
    result = check(looping(4, 4, 4), pressed)

    assert result.outcome == Outcome.VIOLATED
    assert places(result) == [("tolerable-failures loop", "checkpoint 4")]
    assert result.findings[0].detail["failed_s"] == [45, 50, 55]
    assert result.counts["restarts_over_failures"] == 3
    few = check(looping(4, 4, 4), pressed, min_checkpoints=9)
    assert places(few) == [("tolerable-failures loop", "checkpoint 4")]
    assert check(looping(4, 4, 4), pressed, tolerate_loop=True).outcome == Outcome.HELD


@pytest.mark.parametrize(
    "story", [looping(4, 4), looping(4, 4, 5), looping(4, 4, 4, cause="a task threw")]
)
def test_restarts_with_progress_or_another_cause_are_no_loop(
    story: CheckpointStory, pressed: Path
) -> None:
    assert check(story, pressed).outcome == Outcome.HELD


def test_a_loop_before_the_first_checkpoint_goes_back_to_the_beginning(pressed: Path) -> None:
    story = CheckpointStory().submitted()
    for number in (1, 2, 3):
        story.failed(number, 10.0 * number).failing(10.0 * number + 8, EXCEEDED)

    result = check(story, pressed)

    assert ("tolerable-failures loop", "its beginning") in places(result)
    assert ("expired", "checkpoint 1") in places(result)


@pytest.mark.parametrize(("share", "outcome"), [(0.9, Outcome.HELD), (0.91, Outcome.VIOLATED)])
def test_the_required_share_is_enough(pressed: Path, share: float, outcome: Outcome) -> None:
    story = CheckpointStory().submitted(aligned_checkpoint_timeout=0)
    for number in range(1, 11):
        kind = "CHECKPOINT" if number == 10 else "UNALIGNED_CHECKPOINT"
        story.completed(number, 10.0 * number, type=kind)

    requested = {"type": "unaligned", "typed_share": share}
    assert check(story, pressed, under_pressure=False, **requested).outcome == outcome


def acknowledged(story: CheckpointStory, number: int, count: int) -> CheckpointStory:
    story.at(
        10.0 * number,
        Action.CHECKPOINT_ACKNOWLEDGED,
        job="job",
        checkpoint=number,
        acknowledged=count,
        subtasks=4,
    )
    return story


@pytest.mark.parametrize(
    ("parts", "counted", "missing"),
    [
        (None, None, 0),  # an older record
        (unaligned(), None, 0),
        (unaligned(), 2, 0),
        ([], None, 4),
        ([], 0, 4),
        (None, 3, 1),
        (unaligned()[:3], 3, 1),
        (unaligned()[:3], None, 0),  # tasks that have finished need not acknowledge
    ],
)
def test_a_completed_checkpoint_with_missing_acknowledgements_is_undecided(
    pressed: Path, parts: list[dict[str, Any]] | None, counted: int | None, missing: int
) -> None:
    story = four(fourth={"subtasks": parts})
    if counted is not None:
        acknowledged(story, 4, counted)

    result = check(story, pressed)

    assert result.outcome == (Outcome.UNDECIDED if missing else Outcome.HELD)
    message = (
        f"checkpoint 4 is recorded as completed, and acknowledgements of {missing} of its subtasks"
    )
    assert (message in result.summary) == bool(missing)


def fails(story: CheckpointStory, count: int, **changed: Any) -> CheckpointStory:
    for number in range(5, 5 + count):
        story.failed(number, 41.0 + number, took_s=0.5, **changed)
    return story


@pytest.mark.parametrize("reason", ["", "no reason given"])
def test_a_checkpoint_that_failed_without_a_reason_may_count(reason: str, pressed: Path) -> None:
    story = fails(four(), 2, reason=reason)

    result = check(story, pressed)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == (
        "checkpoint 5 failed, and the reason was not recorded; if such checkpoints count as "
        "failed, 4 of 6 completed"
    )
    assert check(story, pressed, completed_share=0.66).outcome == Outcome.HELD
    assert check(fails(four(), 2, reason=LOST), pressed).outcome == Outcome.HELD


def test_a_checkpoint_that_failed_without_a_reason_or_pressure_is_not_judged(
    tmp_path: Path,
) -> None:
    story = fails(four(), 2, reason="")
    press(tmp_path, 0.9, until_s=43)
    assert check(story, tmp_path).outcome == Outcome.UNDECIDED, "without later samples"
    press(tmp_path, lambda second: 0.9 if second < 43 else 0.0)
    assert check(story, tmp_path).outcome == Outcome.HELD


def test_a_failed_checkpoint_with_unsampled_pressure_may_count(tmp_path: Path) -> None:
    story = fails(four(), 2)
    press(tmp_path, 0.9, until_s=43)

    result = check(story, tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "checkpoint 5 failed, and whether it was under back-pressure" in result.summary
    assert check(story, tmp_path, completed_share=0.66).outcome == Outcome.HELD


def test_a_checkpoint_of_unsampled_pressure_may_have_had_the_highest_ratio(tmp_path: Path) -> None:
    press(tmp_path, 1.0, until_s=43)

    assert check(fails(four(), 2), tmp_path, pressure_ratio=1.0).outcome == Outcome.UNDECIDED


def test_a_failed_checkpoint_of_exactly_the_needed_pressure_counts_once(tmp_path: Path) -> None:
    press(tmp_path, 0.5, until_s=120)

    result = check(fails(four(), 1), tmp_path, pressure_ratio=0.5, completed_share=0.8)
    assert result.outcome == Outcome.HELD, result.summary


@pytest.mark.parametrize(
    ("ratio", "missed", "outcome"),
    [
        (0.0, range(48, 86), Outcome.UNDECIDED),
        (0.0, range(48, 50), Outcome.HELD),  # two samples that are missing make no hole
        (
            0.0,
            range(48, 66),
            Outcome.HELD,
        ),  # even with back-pressure throughout the hole it is too little
        (1.0, range(48, 66), Outcome.VIOLATED),
        (1.0, range(48, 86), Outcome.UNDECIDED),  # nor is it known from the samples at its ends
    ],
)
def test_a_failed_checkpoint_in_a_hole_of_the_samples_may_count(
    ratio: float, missed: range, outcome: Outcome, tmp_path: Path
) -> None:
    story = four().failed(5, 46.0, took_s=42)
    press(tmp_path, lambda second: 0.9 if second < 43 else ratio, until_s=90, missed=missed)

    result = check(story, tmp_path)
    assert result.outcome == outcome, result.summary
    message = "checkpoint 5 failed, and whether it was under back-pressure was not sampled"
    assert outcome != Outcome.UNDECIDED or result.summary.startswith(message)


@pytest.mark.parametrize(
    ("ratio", "missed", "outcome"),
    [
        (0.0, range(0), Outcome.UNDECIDED),
        (0.0, range(13, 100), Outcome.UNDECIDED),
        (0.9, range(13, 100), Outcome.UNDECIDED),
        (0.9, range(13, 30), Outcome.HELD),
        (0.9, range(0), Outcome.HELD),
    ],
)
def test_samples_of_its_begin_prove_no_back_pressure_of_a_long_checkpoint(
    ratio: float, missed: range, outcome: Outcome, tmp_path: Path
) -> None:
    """It took from 10 to 50 s, and the ratio was 0.9 until 13 s."""
    story = CheckpointStory().submitted().completed(1, 10, took_s=40)
    press(tmp_path, lambda second: 0.9 if second < 13 else ratio, until_s=60, missed=missed)

    assert check(story, tmp_path, min_checkpoints=1).outcome == outcome


def unended(at_once: int | None = None) -> CheckpointStory:
    """Four completed checkpoints, and three without a recorded end."""
    story = CheckpointStory().submitted(max_concurrent=at_once)
    for number in (1, 2, 3, 4):
        story.completed(number, 10.0 * number)
    for number in (5, 6, 7):
        story.triggered(number, 40.0 + number)
    return story


@pytest.mark.parametrize(
    ("story", "unended_count"),
    [
        (unended().at(60, Action.DRAINED), 2),
        (unended(at_once=2).at(60, Action.DRAINED), 1),
        (unended(at_once=3).at(60, Action.DRAINED), 0),
        # Those of the last ten seconds may have been in progress, whatever the job allows.
        (unended().at(55.5, Action.DRAINED), 1),
        (unended().at(55, Action.DRAINED), 0),
        # A checkpoint in progress at a restart has no further event, unlike one that ended long
        # before.
        (unended().restored(4, 50).at(70, Action.DRAINED), 0),
        (unended().failing(50).at(70, Action.DRAINED), 0),
        (unended().failing(60).at(70, Action.DRAINED), 2),
        (unended(at_once=3).failing(60).at(70, Action.DRAINED), 0),
    ],
)
def test_a_triggered_checkpoint_without_an_end_may_count(
    story: CheckpointStory, unended_count: int, pressed: Path
) -> None:
    result = check(story, pressed)
    assert result.outcome == (Outcome.UNDECIDED if unended_count else Outcome.HELD), result.summary
    message = "checkpoint 5 was triggered, and its end was not recorded"
    counted = f"if such checkpoints count as failed, 4 of {4 + unended_count} completed"
    assert not unended_count or result.summary == f"{message}; {counted}"


@pytest.mark.parametrize(("at_once", "outcome"), [(1, Outcome.UNDECIDED), (4, Outcome.HELD)])
def test_a_checkpoint_had_ended_when_the_last_ones_were_triggered(
    at_once: int, outcome: Outcome, pressed: Path
) -> None:
    """Of six checkpoints the end of the third was lost. It may have failed, unless four may be in
    progress at a time."""
    story = CheckpointStory().submitted(max_concurrent=at_once).triggered(3, 30)
    for number in (1, 2, 4, 5, 6):
        story.completed(number, 10.0 * number)
    story.at(120, Action.DRAINED)

    assert check(story, pressed).outcome == outcome


def test_a_checkpoint_in_progress_at_a_restart_may_be_followed_by_one_seen_before_it(
    pressed: Path,
) -> None:
    """As after the loss of a JobManager: the first answer of the new one has the new checkpoint and
    the restore, and the restore came first by its stamp."""
    story = four().triggered(5, 45).completed(6, 62)
    about = {"job": "job", "checkpoint": 4, "restored_at_ms": stamp(60)}
    story.at(62.2, Action.JOB_RESTORED, **about).at(120, Action.DRAINED)

    assert check(story, pressed).outcome == Outcome.HELD


def test_a_checkpoint_without_an_end_counts_for_the_fault_it_began_in(pressed: Path) -> None:
    recorded = CheckpointStory().submitted().injected("delay_checkpoint", 5, 44)
    for number in (1, 2, 3):
        recorded.completed(number, 10.0 * number)
    recorded.triggered(4, 40).triggered(5, 50).triggered(6, 55).at(70, Action.DRAINED)

    result = check(recorded, pressed, fault="delay_checkpoint")
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("3 of 4 completed")
    later = check(recorded, pressed, fault="delay_checkpoint", completed_share=0.75)
    assert later.outcome == Outcome.HELD, "the fifth began after the heal"


@pytest.mark.parametrize("earlier_s", [0, 60])
def test_a_checkpoint_with_two_triggers_is_undecided(earlier_s: int, pressed: Path) -> None:
    """Its end says that it was triggered long before the fault."""
    told, story = CheckpointStory().submitted(), CheckpointStory()
    for number in (1, 2, 3, 4):
        told.completed(number, 10.0 * number)
    for event in told.history():
        value = dict(event.value)
        if event.action == COMPLETED and value["checkpoint"] == 3:
            value["trigger_ms"] -= earlier_s * 1000
        story.at(event.at_s, event.action, **value)

    result = check(story, pressed, completed_share=0.1)
    assert result.outcome == (Outcome.UNDECIDED if earlier_s else Outcome.HELD), result.summary
    named = "checkpoint 3 is recorded with triggers that are 60.0 s apart"
    assert (named in result.summary) == (earlier_s == 60)


@pytest.mark.parametrize("failed_s", [40.2, 41.5])
def test_a_checkpoint_recorded_as_completed_and_failed_is_undecided(
    failed_s: float, pressed: Path
) -> None:
    story = CheckpointStory().submitted()
    for number in (1, 2, 3):
        story.completed(number, 10.0 * number)
    ends = {40.8: COMPLETED, failed_s: Action.CHECKPOINT_FAILED}
    for at_s, action in sorted(ends.items()):
        story.at(
            at_s,
            action,
            job="job",
            checkpoint=4,
            type="CHECKPOINT",
            duration_ms=100,
            reason="Checkpoint was declined.",
        )

    result = check(story, pressed, completed_share=0.1)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "checkpoint 4 is recorded both to have completed and to have failed"


@pytest.mark.parametrize("wanted", [True, False])
def test_in_flight_bytes_of_a_subtask_contradict_zero_bytes_of_the_checkpoint(
    wanted: bool, pressed: Path
) -> None:
    kept = [part("v1", 0, unaligned=True), part("v1", 1, unaligned=True, persisted_bytes=9)]
    result = check(four(persisted_bytes=0, subtasks=kept), pressed, persisted=wanted)

    assert result.outcome == Outcome.UNDECIDED
    assert "checkpoint 1 is recorded to hold 0 in-flight bytes, and its subtasks" in result.summary
    assert check(four(persisted_bytes=0, subtasks=kept), pressed).outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("took_ms", "slowest_ms", "listed", "contradicts"),
    [
        (400, 400, 4, False),
        (400, 401, 4, True),
        (401, 400, 4, True),
        (400, 401, 3, True),
        (401, 400, 3, False),  # the subtask that is missing may have taken so long
        (401, 0, 0, False),
        (-1, 400, 4, False),  # not measured
    ],
)
def test_a_duration_is_that_of_the_slowest_subtask(
    took_ms: int, slowest_ms: int, listed: int, contradicts: bool, pressed: Path
) -> None:
    quick = [part(*place, unaligned=True, persisted_bytes=0) for place in PLACES]
    parts = [{**quick[0], "duration_ms": slowest_ms}, *quick[1:]][:listed]
    story = four()
    story.triggered(9, 50)
    stamps = {"job": "job", "checkpoint": 9, "trigger_ms": stamp(50), "duration_ms": took_ms}
    story.at(50.4, Action.CHECKPOINT_COMPLETED, **stamps, subtasks=parts)
    acknowledged(story, 9, 4)

    result = check(story, pressed)
    told = (
        f"checkpoint 9 is recorded to have taken {took_ms} ms, and its slowest subtask "
        f"{slowest_ms} ms"
    )
    assert result.outcome == (Outcome.UNDECIDED if contradicts else Outcome.HELD)
    assert (told in result.summary) == contradicts


@pytest.mark.parametrize(("known", "outcome"), [(1, Outcome.UNDECIDED), (3, Outcome.VIOLATED)])
def test_durations_that_are_not_recorded_may_have_been_short(
    known: int, outcome: Outcome, pressed: Path
) -> None:
    story = CheckpointStory().submitted()
    for number in range(1, 6):
        changed: dict[str, Any] = {} if number <= known else {"duration_ms": None}
        story.completed(number, 10.0 * number, took_s=5, **changed)

    assert check(story, pressed, within_ms=1000).outcome == outcome
    assert check(story, pressed, within_ms=0.5).outcome == outcome


def test_a_negative_duration_is_not_a_duration(pressed: Path) -> None:
    result = check(four({"duration_ms": -1}), pressed, within_ms=250)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "how long a completed checkpoint took is not recorded"
    assert check(four({"duration_ms": 0}), pressed, within_ms=250).outcome == Outcome.HELD


@pytest.mark.parametrize("kind", [None, "aligned", "unaligned"])
def test_unaligned_subtasks_beside_a_count_of_none_are_undecided(
    kind: str | None, pressed: Path
) -> None:
    def all_unaligned(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**each, "unaligned": True} for each in parts]

    result = check(reported(parts=all_unaligned), pressed, type=kind, min_checkpoints=2)
    assert result.outcome == Outcome.UNDECIDED
    told = "checkpoint 3 is recorded with 0 unaligned subtasks, and lists 4"
    assert result.summary.startswith(told)


@pytest.mark.parametrize("listed", [3, 0])
def test_the_type_needs_the_subtasks_that_acknowledged(listed: int, pressed: Path) -> None:
    story = reported(parts=lambda parts: parts[:listed])
    result = check(story, pressed, type="aligned")
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == (
        f"4 subtasks acknowledged checkpoint 3, and {listed} of them are listed"
    )
    assert check(story, pressed).outcome == Outcome.HELD
    assert check(reported(subtasks=None), pressed, type="aligned").outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("story", "number", "kind"),
    [(reported(type="other"), 3, "aligned"), (four({"type": "other"}), 4, "unaligned")],
)
def test_a_type_that_flink_does_not_have_is_undecided(
    story: CheckpointStory, number: int, kind: str, pressed: Path
) -> None:
    result = check(story, pressed, type=kind)
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        f"checkpoint {number} has the type other, which is neither aligned nor unaligned",
    )
    assert check(story, pressed).outcome == Outcome.HELD
