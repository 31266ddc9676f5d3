"""The report of a completed checkpoint: all of its parts agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamquake.harness.verdict.evidence.checkpoints import checkpoints_of
from streamquake.reports.record.event import Action
from tests.harness.verdict.checkpoint_story import CheckpointStory, part, reported, stamp

Parts = list[dict[str, Any]]

TAKEN = (
    "is recorded to have taken {} ms until an acknowledgement, which came {} ms after its trigger"
)


def contradictions(story: CheckpointStory) -> list[str]:
    return [each.contradiction for each in checkpoints_of(story.history())]


def first_part(**changed: Any) -> Callable[[Parts], Parts]:
    """A function that changes the first of some subtasks."""
    return lambda parts: [{**parts[0], **changed}, *parts[1:]]


@pytest.mark.parametrize(
    ("report", "contradiction"),
    [
        (
            {"parts": lambda parts: [*parts[:3], parts[0]]},
            "lists the subtask source/0 2 times",
        ),
        (
            {"parts": lambda parts: [*parts, part("v3", 0, duration_ms=100)]},
            "is recorded with 5 acknowledgements of 4 subtasks",
        ),
        (
            {"parts": first_part(subtask=2)},
            "lists the subtask source/2, which its job does not have",
        ),
        (
            {"parts": first_part(vertex="v3")},
            "lists the subtask v3/0, which its job does not have",
        ),
        (
            {"unaligned_subtasks": 1},
            "is recorded with 1 unaligned subtasks, and lists 0",
        ),
        (
            {"parts": first_part(unaligned=True)},
            "is recorded with 0 unaligned subtasks, and lists 1",
        ),
        ({"parts": first_part(alignment_ms=-2)}, "is recorded with the alignment_ms -2"),
        ({"parts": first_part(start_delay_ms=-9)}, "is recorded with the start_delay_ms -9"),
        ({"state_bytes": -2}, "is recorded with the state_bytes -2"),
        ({"duration_ms": -2}, "is recorded with the duration_ms -2"),
        (
            {"parts": first_part(alignment_ms=1101)},
            "has a subtask with an alignment_ms of 1,101, and its whole checkpoint took 100 ms",
        ),
        (
            {"parts": first_part(ack_ms=stamp(28.9))},
            "was acknowledged 1.100 s before its trigger",
        ),
        ({"first_ack_ms": stamp(29.999)}, "was acknowledged 0.001 s before its trigger"),
        ({"parts": first_part(ack_ms=stamp(32))}, TAKEN.format(100, "2,000")),
        ({"parts": first_part(ack_ms=stamp(30.099))}, TAKEN.format(100, 99)),
        ({"parts": first_part(duration_ms=20)}, TAKEN.format(20, 100)),
        ({"last_ack_ms": stamp(30.101)}, TAKEN.format(100, 101)),
        (
            {
                "last_ack_ms": stamp(30.1),
                "duration_ms": 20,
                "parts": lambda parts: [{**each, "duration_ms": 20} for each in parts],
            },
            TAKEN.format(20, 100),
        ),
        (
            {
                "duration_ms": 1300,
                "parts": lambda parts: [{**each, "duration_ms": 1300} for each in parts],
            },
            "was seen to complete 1.2 s before its last acknowledgement",
        ),
    ],
)
def test_a_report_that_contradicts_itself_is_named(
    report: dict[str, Any], contradiction: str
) -> None:
    assert contradictions(reported(**report)) == ["", "", contradiction]


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"parts": first_part(alignment_ms=-1, async_ms=-1)},  # not measured
        {"parts": first_part(start_delay_ms=9000)},  # by the clocks of two machines
        {"parts": first_part(alignment_ms=1100)},
        {"first_ack_ms": stamp(30), "last_ack_ms": stamp(30.1)},
        {"parts": first_part(ack_ms=stamp(30.02), duration_ms=20)},
        {"duration_ms": -1},  # not measured
        {"unaligned_subtasks": None},
    ],
)
def test_a_report_with_small_differences_agrees_with_itself(report: dict[str, Any]) -> None:
    assert contradictions(reported(**report)) == ["", "", ""]


def test_stamps_of_moved_clocks_contradict_nothing() -> None:
    story = reported(parts=first_part(ack_ms=stamp(-3600)))
    assert any(contradictions(story))
    story.at(50, Action.FAULT_CALLED, step=0, fault="clock_skew", targets=[], params={})
    assert not any(contradictions(story))


def test_subtasks_of_a_rescaled_job_are_not_those_of_its_first_graph() -> None:
    story = reported(parts=lambda parts: [*parts, {**parts[0], "subtask": 2}])
    story.at(31, Action.CHECKPOINT_ACKNOWLEDGED, job="job", checkpoint=3, subtasks=5)
    assert not any(contradictions(story))


@pytest.mark.parametrize("apart_ms", [0, 1, 2000])
def test_a_checkpoint_that_completed_twice_was_triggered_once(apart_ms: int) -> None:
    """Its last end agrees with its trigger."""
    story = CheckpointStory().submitted().triggered(1, 10)
    for trigger_ms in (stamp(10) + apart_ms, stamp(10)):
        about = {"job": "job", "checkpoint": 1, "type": "CHECKPOINT", "trigger_ms": trigger_ms}
        story.at(11, Action.CHECKPOINT_COMPLETED, **about, duration_ms=100)
    apart = f"is recorded with triggers that are {apart_ms / 1000:.1f} s apart" if apart_ms else ""
    assert contradictions(story) == [apart]
