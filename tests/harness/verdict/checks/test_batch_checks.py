"""`checkpoints` and `backpressure_root` of micro-batches: one changed value changes the outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.check import check_safely
from streamquake.harness.verdict.checks.backpressure_root import BackpressureRoot
from streamquake.harness.verdict.checks.checkpoints import Checkpoints
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.verdict.batch_story import BatchStory, PartDurations

SLOW_SINK = PartDurations(sink=6000)


def pressed(took: PartDurations = SLOW_SINK, link: str = "link sink") -> BatchStory:
    """Five usual batches, and four slow ones while a link is slow; more and more records wait."""
    story = BatchStory().batches(100, 50, 60, 50, 60).injected("slow_link", link)
    return story.batches(70, 200, 500, 900, took=took).healed().batches(400, 100)


def checkpoints(story: BatchStory, folder: Path, **params: Any) -> CheckResult:
    return Checkpoints(**params).check(story.judged(folder))


def root(story: BatchStory, folder: Path, **params: Any) -> CheckResult:
    return BackpressureRoot(**params).check(story.judged(folder))


@pytest.mark.parametrize("field", ["offsets", "state_operators", "input_rows"])
def test_a_batch_without_a_field_is_undecided_and_named(tmp_path: Path, field: str) -> None:
    story = pressed()
    event = next(e for e in story.history() if e.action == Action.CHECKPOINT_COMPLETED)
    del event.value[field]  # type: ignore[attr-defined]
    result = check_safely(Checkpoints(), story.judged(tmp_path))
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        f"event {event.index}, `checkpoint completed`, is recorded without its `{field}`",
    )


def test_batches_that_are_committed_under_back_pressure_are_held(tmp_path: Path) -> None:
    result = checkpoints(pressed(), tmp_path, fault="slow_link")
    assert result.outcome == Outcome.HELD, result.summary
    assert result.summary.startswith("3 of 3 checkpoints completed under back-pressure")
    assert "addBatch dominates" in result.summary
    recorded = {
        name: result.counts[name]
        for name in (
            "batch_ms",
            "batch_rows",
            "waiting_rows_max",
            "add_batch_ms",
            "wal_commit_ms",
            "commit_offsets_ms",
            "state_commit_ms",
            "state_files_copied",
            "state_bytes",
        )
    }
    assert recorded == {
        "batch_ms": 6800,
        "batch_rows": 200,
        "waiting_rows_max": 500,
        "add_batch_ms": 6600,
        "wal_commit_ms": 50,
        "commit_offsets_ms": 50,
        "state_commit_ms": 200,
        "state_files_copied": 4,
        "state_bytes": 500,
    }


def test_a_query_that_ends_over_its_batches_under_back_pressure_is_violated(
    tmp_path: Path,
) -> None:
    story = BatchStory().batches(100, 50, 60, 120, took=SLOW_SINK).fails(own=True)
    result = checkpoints(story, tmp_path, min_checkpoints=2)
    assert result.outcome == Outcome.VIOLATED
    (finding,) = result.findings
    assert (finding.what, finding.where, finding.detail["reason"]) == (
        "query ended",
        "batch 4",
        "Boom",
    )
    killed = BatchStory().batches(100, 50, 60, 120, took=SLOW_SINK).fails(own=False)
    result = checkpoints(killed, tmp_path, min_checkpoints=2)
    assert result.outcome == Outcome.HELD, "the end of a driver is no failure of its batch"


def test_a_query_that_ends_after_the_back_pressure_is_not_judged(tmp_path: Path) -> None:
    """Fewer records waited for the last committed batch."""
    story = BatchStory().batches(100, 50, 60, 120, 40, took=SLOW_SINK).fails(own=True)
    result = checkpoints(story, tmp_path, min_checkpoints=2)
    assert (result.outcome, result.counts["completed"]) == (Outcome.HELD, 2)


def test_a_query_that_ends_over_the_same_batch_each_time_is_a_loop(tmp_path: Path) -> None:
    story = BatchStory().batches(100, 50, 60, 50, 60)
    for _ in range(3):
        story.fails(own=True)
    result = checkpoints(story, tmp_path)
    assert result.outcome == Outcome.VIOLATED
    (finding,) = result.findings
    assert (finding.what, finding.where) == ("one batch fails again and again", "checkpoint 4")
    assert result.counts["restarts_over_failures"] == 3

    killed = BatchStory().batches(100, 50, 60, 50, 60)
    for _ in range(3):
        killed.fails(own=False)
    assert checkpoints(killed, tmp_path).outcome == Outcome.UNDECIDED


def test_commits_that_take_too_long_are_violated(tmp_path: Path) -> None:
    assert checkpoints(pressed(), tmp_path, within_ms=7000).outcome == Outcome.HELD
    assert checkpoints(pressed(), tmp_path, within_ms=6000).outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    ("story", "params", "reason"),
    [
        (BatchStory().batches(100, 50, 60, 50, 60, 50), {}, "0 micro-batches fell behind"),
        (pressed(), {"type": "unaligned"}, "neither aligned nor unaligned"),
        (pressed(), {"persisted": False}, "neither aligned nor unaligned"),
        (BatchStory().batches(100, 50, 60, 120), {}, "2 micro-batches fell behind"),
    ],
)
def test_batches_without_proof_are_undecided(
    story: BatchStory, params: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    result = checkpoints(story, tmp_path, **params)
    assert result.outcome == Outcome.UNDECIDED
    assert reason in result.summary


@pytest.mark.parametrize(
    ("link", "took", "part"),
    [
        ("link sink", SLOW_SINK, "operators and sink"),
        ("link source", PartDurations(source=6000), "source"),
        ("link checkpoints", PartDurations(state=6000), "checkpoint store"),
        ("link checkpoints", PartDurations(log=6000), "checkpoint store"),
    ],
)
def test_the_slow_part_of_the_batches_is_found(
    link: str, took: PartDurations, part: str, tmp_path: Path
) -> None:
    result = root(pressed(took, link), tmp_path)
    assert result.outcome == Outcome.HELD, result.summary
    assert f"the root is the part {part}," in result.summary
    assert (result.counts["root_longer_ms"] or 0) > 4000
    other = root(pressed(PartDurations(driver=6000), link), tmp_path)
    assert other.outcome == Outcome.VIOLATED
    assert (other.findings[0].what, other.findings[0].where) == ("another root", "driver")


def test_batches_after_an_early_end_of_the_fault_do_not_count(tmp_path: Path) -> None:
    def then(took: PartDurations, *, early: bool) -> BatchStory:
        story = BatchStory().batches(100, 50, 60, 50, 60).injected("slow_link", "link sink")
        story.batches(70, 200, 500, 900, took=SLOW_SINK)
        if early:
            seen = {"seen_ns": story.now_ms * 10**6, "reason": "the proxy is gone"}
            story.at(story.now_ms / 1000, Action.FAULT_ENDED_EARLY, step=0, **seen)
        return story.batches(1000, 2000, 4000, 9000, 20000, took=took).healed().batches(100)

    slow_driver = PartDurations(driver=9000)
    assert root(then(slow_driver, early=False), tmp_path).outcome == Outcome.VIOLATED
    result = root(then(slow_driver, early=True), tmp_path)
    assert result.outcome == Outcome.HELD, result.summary
    assert "the root is the part operators and sink" in result.summary


def test_no_back_pressure_may_be_expected_of_batches(tmp_path: Path) -> None:
    quiet = BatchStory().batches(100, 50, 60).injected("slow_link", "link sink").batches(50, 60, 50)
    assert root(quiet.healed(), tmp_path, expect="none").outcome == Outcome.HELD
    assert root(pressed(), tmp_path, expect="none").outcome == Outcome.VIOLATED


def test_the_slow_part_of_the_batches_may_be_expected(tmp_path: Path) -> None:
    assert root(pressed(), tmp_path, expect="sink").outcome == Outcome.HELD
    assert root(pressed(), tmp_path, expect="store").outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    ("story", "params", "reason"),
    [
        (
            BatchStory().batches(100, 50).injected("slow_link", "link sink").batches(60, 200),
            {},
            "at least 2 are needed to compare with",
        ),
        (
            BatchStory().batches(100, 50, 60).injected("slow_link", "link sink").batches(50, 60),
            {},
            "no back-pressure is proven",
        ),
        (
            BatchStory().batches(100, 50, 60).injected("slow_link", "link sink"),
            {},
            "no batch ran in that time",
        ),
        (pressed(PartDurations(sink=3000, source=2400)), {}, "no part accounts for most"),
        (pressed(link="link data"), {}, "is not known"),
        (pressed(), {"expect": "window"}, "in no part's name"),
    ],
)
def test_without_evidence_no_part_is_the_root(
    story: BatchStory, params: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    result = root(story, tmp_path, **params)
    assert result.outcome == Outcome.UNDECIDED
    assert reason in result.summary


def test_the_reason_of_a_failed_batch_must_be_recorded(tmp_path: Path) -> None:
    story = BatchStory().batches(10, 10, 10, 10).fails(own=None).batches(10, 10)

    result = checkpoints(story, tmp_path, under_pressure=False)
    assert result.outcome == Outcome.UNDECIDED
    assert "batch 4 failed, and the reason was not recorded" in result.summary
    counted = checkpoints(story, tmp_path, under_pressure=False, completed_share=0.8)
    assert counted.outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("under_way_s", "outcome"), [(3.6, Outcome.HELD), (3.7, Outcome.UNDECIDED)]
)
def test_a_batch_in_progress_for_long_may_have_fallen_behind(
    under_way_s: float, outcome: Outcome, tmp_path: Path
) -> None:
    """Committed batches took 1.8 s each."""
    story = BatchStory().batches(10, 10, 10, 10).injected("slow_link", "link sink").batch(10)
    story.triggered().now_ms += round(under_way_s * 1000)
    result = root(story.healed(), tmp_path, expect="none")
    assert result.outcome == outcome, result.summary
    assert outcome == Outcome.HELD or result.summary == (
        "batch 5 had been in progress for 3.7 s and was not committed, and the longest of the "
        "others took 1.8 s"
    )
