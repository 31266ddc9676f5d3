"""What the record of one run proves about the phases that its faults met, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.reports.coverage.cell import CheckpointKind, Phase, Place
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from tests.harness.coverage.coverage_story import (
    FIRST,
    PAUSED,
    SECOND,
    CoverageStory,
    acknowledged_by,
    hits,
    proven,
    step,
)
from tests.harness.histories import KILLED
from tests.harness.verdict.checkpoint_story import JOB, stamp

ALIGNED, NONE = CheckpointKind.ALIGNED, CheckpointKind.NONE
BETWEEN_TRIGGER_AND_END = step(between=("checkpoint triggered", "checkpoint completed"))


def kills(phase: Phase, kind: CheckpointKind, *places: Place) -> set[tuple[str, Phase, str, str]]:
    return {("kill", phase, place, kind) for place in places}


def hit(phase: Phase, kind: CheckpointKind) -> set[tuple[str, Phase, str, str]]:
    """The cells of a TaskManager that runs a subtask of both vertices."""
    return kills(phase, kind, Place.SOURCE, Place.OPERATOR)


def killed_in_checkpoint(**changed: Any) -> CoverageStory:
    """A TaskManager is killed one second after a trigger; the checkpoint and the job fail."""
    story = CoverageStory()
    story.committed(1, 5.5, 5.7)
    story.triggered(2, 8)
    story.fault(9, heal_s=10.4)
    story.job_failing(9.05)
    story.ended(2, 8, 9.05, failed=True, **changed)
    story.job_restored(9.5, 1).job_running(11)
    story.triggered(3, 12)
    return story.ended(3, 12, 12.3)


def test_a_kill_before_the_acknowledgements_hits_the_barrier_phase() -> None:
    history = killed_in_checkpoint().history()
    assert proven(history) == hit(Phase.BARRIER, ALIGNED)
    assert {hit.how for hit in hits(history)} == {"took effect in it, by the engine's stamps"}


def test_the_kind_of_a_failed_checkpoint_is_that_of_its_job() -> None:
    story = CoverageStory(unaligned=True)
    story.triggered(1, 8)
    story.fault(9, heal_s=11).job_failing(9.05).ended(1, 8, 9.05, failed=True)
    assert proven(story.history()) == hit(Phase.BARRIER, CheckpointKind.UNALIGNED)


def test_a_place_that_had_acknowledged_is_not_hit_before_the_others_have() -> None:
    parts = acknowledged_by(("v1", 0), ("v1", 1))
    history = killed_in_checkpoint(subtasks=parts).history()
    assert proven(history) == kills(Phase.BARRIER, ALIGNED, Place.OPERATOR)


@pytest.mark.parametrize(
    ("acknowledged_s", "is_proven"), [(9.5, True), (9.05, False), (8.9, False)]
)
def test_the_tolerance_of_the_stamps_counts_against_the_proof(
    acknowledged_s: float, is_proven: bool
) -> None:
    story = CoverageStory()
    story.triggered(1, 8)
    story.fault(9, name="pause", evidence=PAUSED, heal_s=11)
    story.ended(1, 8, acknowledged_s, seen_s=10)
    found = proven(story.history(), step("pause"))
    barrier = {cell for cell in found if cell[1] is Phase.BARRIER}
    assert bool(barrier) is is_proven


def test_a_fault_between_acknowledgements_and_completion_needs_a_later_sight_in_progress() -> None:
    def story(seen_s: float) -> History:
        found = CoverageStory()
        found.triggered(1, 8)
        found.at(
            seen_s,
            Action.CHECKPOINT_ALL_ACKNOWLEDGED,
            job=JOB,
            checkpoint=1,
            type="CHECKPOINT",
            trigger_ms=stamp(8),
            ack_ms=stamp(8.5),
        )
        return found.fault(9, heal_s=11).ended(1, 8, 8.5, seen_s=9.8).history()

    assert proven(story(seen_s=9.5)) == hit(Phase.ACKNOWLEDGED, ALIGNED)
    assert proven(story(seen_s=8.6)) == set()
    unproven = {hit.cell.phase for hit in hits(story(seen_s=8.6))}
    assert unproven == {Phase.ACKNOWLEDGED, Phase.COMPLETED}


PLANNED_COMMIT = step(between=("checkpoint completed", "sink committed"))


def killed_before_commit(committed_s: float) -> CoverageStory:
    story = CoverageStory()
    story.triggered(1, 8)
    story.ended(1, 8, 8.5, seen_s=8.6)
    completed = len(story.history()) - 1
    if committed_s < 9:
        story.at(committed_s, Action.SINK_COMMITTED, checkpoint=1, output="totals", end=1)
    story.fault(9, heal_s=11, trigger=completed)
    if committed_s >= 9:
        story.at(committed_s, Action.SINK_COMMITTED, checkpoint=1, output="totals", end=1)
    return story.job_failing(9.4)


def test_the_window_that_the_run_judged_proves_a_commit_that_no_stamp_shows() -> None:
    history = killed_before_commit(9.3).history()
    assert proven(history, PLANNED_COMMIT) == hit(Phase.COMPLETED, ALIGNED)
    assert proven(history) == set()


def test_a_window_that_the_record_contradicts_proves_nothing() -> None:
    assert proven(killed_before_commit(8.7).history(), PLANNED_COMMIT) == set()


def test_a_window_that_the_run_missed_proves_nothing() -> None:
    story = killed_before_commit(9.3).at(
        9.3, Action.FAULT_MISSED_WINDOW, step=0, fault="kill", nodes=[FIRST], reason="too late"
    )
    assert proven(story.history(), PLANNED_COMMIT) == set()


def test_a_kill_between_two_checkpoints_is_in_no_phase() -> None:
    story = CoverageStory()
    story.committed(1, 8, 8.3)
    story.fault(9, heal_s=11)
    before_the_next = story.history()
    story.triggered(2, 10)
    assert proven(story.history()) == hit(Phase.BETWEEN, NONE)
    assert {each.cell.phase for each in hits(before_the_next)} == {Phase.UNKNOWN}
    assert proven(before_the_next) == set()


def test_a_missing_number_may_be_a_checkpoint_in_progress() -> None:
    story = CoverageStory()
    story.committed(1, 8, 8.3)
    story.fault(9, heal_s=11).triggered(3, 10)
    assert proven(story.history()) == set()


def paused(ended_early_s: float | None = None) -> History:
    story = CoverageStory()
    story.fault(7, name="pause", evidence=PAUSED)
    if ended_early_s is not None:
        story.at(
            ended_early_s,
            Action.FAULT_ENDED_EARLY,
            step=0,
            fault="pause",
            nodes=[FIRST],
            reason="it runs",
            seen_ns=round(ended_early_s * 1e9),
            last_seen_ns=round(7.02e9),
            evidence={FIRST: {"status": "running"}},
        )
    common = {"step": 0, "fault": "pause", "target": FIRST, "nodes": [FIRST]}
    story.committed(1, 9, 12)
    return story.healed(11, common, PAUSED).history()


def test_a_fault_that_lasts_hits_the_phases_that_begin_meanwhile() -> None:
    found = proven(paused(), step("pause"))
    assert ("pause", Phase.BARRIER, Place.SOURCE, ALIGNED) in found


def test_a_fault_that_ended_before_the_phase_does_not_hit_it() -> None:
    assert proven(paused(ended_early_s=8.0), step("pause")) == set()


def test_a_process_that_was_ended_hits_only_once() -> None:
    story = CoverageStory()
    story.committed(1, 5.5, 5.7)
    story.fault(7, heal_s=20).job_failing(7.1).job_restored(8, 1)
    story.job_running(9, nodes=(SECOND, SECOND))
    story.committed(2, 12, 13)
    assert proven(story.history()) == hit(Phase.BETWEEN, NONE)


def test_of_two_faults_at_once_neither_is_proven() -> None:
    story = CoverageStory()
    story.triggered(1, 8)
    story.fault(9, heal_s=11)
    story.fault(9.01, number=1, nodes=(SECOND,), target=SECOND, heal_s=11)
    story.job_failing(9.05).ended(1, 8, 9.05, failed=True)
    found = hits(story.history(), step(), step(target=SECOND))
    assert {(hit.step, hit.verified) for hit in found} == {(0, False), (1, False)}
    assert {hit.how for hit in found} == {"kill took effect at the same time"}
    assert proven(story.history(), step()) == set(), "an unplanned fault is no proof either"


def second_fault(at_s: float) -> History:
    """A kill fails the job at 7.1, its state is assigned at 9, and all tasks run at 12."""
    story = CoverageStory()
    story.committed(1, 5.5, 5.7)
    story.fault(7, heal_s=20).job_failing(7.1)
    if at_s < 9:
        story.fault(at_s, number=1, name="pause", nodes=(SECOND,), target=SECOND, evidence=PAUSED)
    story.job_restored(9, 1)
    if at_s >= 9:
        story.fault(at_s, number=1, name="pause", nodes=(SECOND,), target=SECOND, evidence=PAUSED)
    story.job_running(12)
    return story.triggered(2, 13).history()


@pytest.mark.parametrize(
    ("at_s", "phase"), [(8.0, Phase.RESTART), (10.0, Phase.RESTORE), (7.05, None), (8.95, None)]
)
def test_a_second_fault_hits_the_restart_that_the_first_one_caused(
    at_s: float, phase: Phase | None
) -> None:
    found = proven(second_fault(at_s), step(), step("pause", SECOND))
    restarting = {cell for cell in found if cell[1] in (Phase.RESTART, Phase.RESTORE)}
    own = {cell[1] for cell in restarting if cell[0] == "pause"}
    assert (phase in own) if phase else Phase.RESTART not in own
    assert not {cell for cell in restarting if cell[0] == "kill"}


def paused_after_restore(*, checkpoint: bool) -> History:
    """No poll saw the job run between its restore at 8 and its next failure at 12."""
    story = CoverageStory()
    story.committed(1, 5.5, 5.7)
    story.fault(7, heal_s=20).job_failing(7.1).job_restored(8, 1)
    if checkpoint:
        story.triggered(2, 9)
        story.ended(2, 9, 9.2)
    story.fault(10, number=1, name="pause", nodes=(SECOND,), target=SECOND, evidence=PAUSED)
    return story.job_failing(12).job_restored(13, 1).job_running(14).history()


@pytest.mark.parametrize(("checkpoint", "recorded"), [(True, False), (False, True)])
def test_a_job_that_was_not_seen_to_run_is_not_proven_to_restore(
    checkpoint: bool, recorded: bool
) -> None:
    found = hits(paused_after_restore(checkpoint=checkpoint), step(), step("pause", SECOND))
    onset = [each for each in found if each.step == 1 and each.cell.phase is Phase.RESTORE]
    assert [each.verified for each in onset if "when it began" not in each.how] == (
        [False, False] if recorded else []
    )


def test_a_second_fault_names_the_first_one() -> None:
    found = hits(second_fault(10.0), step(), step("pause", SECOND))
    restore = [each for each in found if each.cell.phase is Phase.RESTORE]
    assert {each.cell.kind for each in restore} == {ALIGNED}
    story = paused()
    assert {each.together_with for each in hits(story, step("pause"))} == {()}


def test_evidence_that_contradicts_the_effect_proves_nothing() -> None:
    story = CoverageStory()
    story.triggered(1, 8)
    story.fault(9, heal_s=11, evidence={**KILLED, "exit_code": 0})
    story.job_failing(9.05).ended(1, 8, 9.05, failed=True)
    (how,) = {each.how for each in hits(story.history())}
    assert proven(story.history()) == set()
    assert how.startswith("contradictory evidence")


def test_an_injection_without_an_effect_is_not_proven() -> None:
    story = CoverageStory()
    story.triggered(1, 8)
    common = {"step": 0, "fault": "kill", "target": FIRST, "nodes": [FIRST]}
    story.at(9, Action.FAULT_CALLED, **common, params={})
    story.at(10, Action.FAULT_NOT_IN_EFFECT, **common, reason="still running")
    found = hits(story.history())
    assert found
    assert not any(each.verified for each in found)


@pytest.mark.parametrize("moved", ["host", "fault"])
def test_stamps_of_a_clock_that_was_set_prove_nothing(moved: str) -> None:
    story = killed_in_checkpoint()
    if moved == "host":
        story.at(14, Action.HOST_CLOCK_SET, by_s=5.0)
    else:
        story.at(14, Action.FAULT_CALLED, step=1, fault="clock_skew", target=SECOND, nodes=[SECOND])
    assert proven(story.history()) == set()
    assert {each.cell.phase for each in hits(story.history())} == {Phase.UNKNOWN}


def test_a_cut_history_proves_nothing_more_than_the_whole_one() -> None:
    for whole, steps in (
        (killed_in_checkpoint().history(), (step(),)),
        (killed_before_commit(9.3).history(), (PLANNED_COMMIT,)),
        (paused(), (step("pause"),)),
        (paused(ended_early_s=8.0), (step("pause"),)),
        (second_fault(10.0), (step(), step("pause", SECOND))),
    ):
        for length in range(len(whole)):
            assert proven(History(whole[:length]), *steps) <= proven(whole, *steps), length


def test_a_history_cut_right_after_the_effect_proves_nothing() -> None:
    whole = killed_in_checkpoint().history()
    effect = next(event for event in whole if event.action == Action.FAULT_IN_EFFECT)
    assert proven(History(whole[: effect.index + 1])) == set()


def test_the_end_of_the_load_is_on_the_clock_of_the_run() -> None:
    story = CoverageStory()
    story.at(8, Action.WORKLOAD_DONE, acknowledged=1, failed=0, unknown=0)
    story.fault(9, heal_s=11).at(20, Action.DRAINED)
    assert hit(Phase.LOAD_END, NONE) <= proven(story.history())
    assert hit(Phase.LOAD_END, NONE).isdisjoint(
        proven(CoverageStory().fault(9, heal_s=11).history())
    )


def test_a_savepoint_is_a_phase_and_a_kind() -> None:
    story = CoverageStory()
    story.at(
        8,
        Action.CHECKPOINT_TRIGGERED,
        job=JOB,
        checkpoint=1,
        type="SAVEPOINT",
        trigger_ms=stamp(8),
    )
    story.fault(9, heal_s=11).job_failing(9.05)
    story.ended(1, 8, 9.05, failed=True, type="SAVEPOINT")
    kind = CheckpointKind.SAVEPOINT
    assert proven(story.history()) == {
        *hit(Phase.SAVEPOINT, kind),
        *hit(Phase.BARRIER, kind),
    }


def test_a_fault_of_the_commit_proves_its_phase_itself() -> None:
    story = CoverageStory()
    story.committed(1, 8, 8.5)
    story.fault(
        9, name="fail_commit", evidence={"hits": 1, "rules": ["r"], "at": ["map subtask 0"]}
    )
    found = hits(story.history(), step("fail_commit"))
    assert {(each.cell.phase, each.cell.place) for each in found} == {(Phase.COMMIT, Place.SINK)}
