"""The cause of each interval of a run, event by event."""

from __future__ import annotations

from typing import Any

from streamquake.harness.verdict.evidence.record_causes import (
    CauseInterval,
    cause_intervals,
    first_sent_indexes,
)
from streamquake.harness.verdict.evidence.sent_times import SentRange
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


def injected(
    reported: Story, step: int, fault: str, called_s: float, healed_s: float | None = None
) -> Story:
    about: dict[str, Any] = {"step": step, "fault": fault, "target": f"node {step}"}
    reported.at(called_s, Action.FAULT_CALLED, **about)
    reported.at(called_s + 0.5, Action.FAULT_IN_EFFECT, **about, evidence={})
    if healed_s is not None:
        reported.at(healed_s, Action.FAULT_HEALED, **about)
    return reported


def ran(reported: Story, at_s: float, attempt: int, state: str = "RUNNING", **name: str) -> Story:
    return reported.at(
        at_s, Action.TASK_CHANGED, vertex="v", subtask=0, attempt=attempt, state=state, **name
    )


def causes(reported: Story) -> list[tuple[float, str]]:
    return [(each.from_ns / 1e9, each.cause) for each in cause_intervals(reported.history())]


def test_faults_begin_and_end_intervals() -> None:
    recorded = injected(
        injected(injected(Story(), 0, "kill", 10, 14), 1, "pause", 12, 20), 2, "fill", 30
    )
    assert causes(recorded) == [
        (0, "before any fault"),
        (10, "during kill on node 0"),
        (12, "during kill on node 0, pause on node 1"),
        (14, "during pause on node 1"),
        (20, "after pause on node 1"),
        (30, "during fill on node 2"),
    ]


def test_after_overlapping_faults_the_one_that_was_healed_last_is_named() -> None:
    recorded = injected(
        injected(injected(Story(), 0, "kill", 10, 20), 1, "pause", 12, 15), 2, "a", 30
    )
    recorded.at(40, Action.FAULT_HEALED, step=2)
    injected(recorded, 3, "b", 35, 40)
    assert causes(recorded)[-4:] == [
        (20, "after kill on node 0"),
        (30, "during a on node 2"),
        (35, "during a on node 2, b on node 3"),
        (40, "after a on node 2, b on node 3"),
    ]


def test_a_fault_without_evidence_of_its_effect_is_named_and_a_skipped_one_is_not() -> None:
    recorded = Story().at(5, Action.FAULT_CALLED, step=0, fault="skew", target="x")
    recorded.at(7, Action.FAULT_NOT_IN_EFFECT, step=0, reason="no step")
    recorded.at(8, Action.FAULT_HEALED, step=0)
    recorded.at(9, Action.FAULT_CALLED, step=1, fault="kill", target="y")
    recorded.at(9, Action.FAULT_SKIPPED, step=1, reason="its intent was not written")
    assert causes(recorded) == [
        (0, "before any fault"),
        (5, "during skew on x (effect not verified)"),
        (8, "after skew on x (effect not verified)"),
    ]


def test_an_interval_names_the_checkpoints_around_it() -> None:
    recorded = Story().checkpoint(1, 3, 4).checkpoint(2, 7, 8)
    recorded.at(9, Action.CHECKPOINT_TRIGGERED, checkpoint=3)
    assert causes(recorded) == [
        (0, "before any fault; before the first checkpoint"),
        (4, "before any fault; after checkpoint 1, before 2"),
        (8, "before any fault; after checkpoint 2"),
    ]


def test_an_attempt_of_the_writer_begins_with_its_first_running_subtask() -> None:
    recorded = ran(ran(Story(), 1, 0, vertex_name="Source: input"), 1.5, 7)
    for at_s, attempt, state in (
        (2, 0, "DEPLOYING"),
        (3, 0, "RUNNING"),
        (3.5, 0, "RUNNING"),
        (9, 1, "RUNNING"),
        (9.5, 1, "FAILED"),
    ):
        ran(recorded, at_s, attempt, state, vertex_name="totals: Writer")
    ran(recorded, 11, 2, vertex_name="Sink: files")
    assert causes(recorded) == [
        (0, "before any fault; before the writer ran"),
        (3, "before any fault; writer's attempt 0"),
        (9, "before any fault; writer's attempt 1"),
        (11, "before any fault; writer's attempt 2"),
    ]


def test_a_run_without_events_is_one_interval() -> None:
    assert cause_intervals(Story().history()) == (
        CauseInterval(from_ns=0, cause="before any fault"),
    )


def test_an_interval_begins_with_the_first_record_sent_in_it_or_later() -> None:
    notes = [SentRange(0, 9, 0, 10), SentRange(10, 19, 10, 20), SentRange(20, 25, 20, 30)]
    parts = [CauseInterval(from_ns=at_ns, cause="") for at_ns in (0, 10, 11, 20, 30, 31)]
    assert first_sent_indexes(notes, parts) == (0, 0, 10, 10, 20, 26)
    assert first_sent_indexes([], parts[:1]) == (0,)
