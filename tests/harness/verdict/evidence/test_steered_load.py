"""The record of the load itself, beside that of a fault of the workload."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.evidence.steered_load import contradicted_load
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.reports.record.event import Action
from tests.harness.histories import Story

SURGE = Step(fault="surge", target="the workload", params={"factor": 3}, when={"after_s": 1})  # type: ignore[arg-type]
KILL = Step(fault="kill", target="flink/taskmanager-1", when={"after_s": 1})  # type: ignore[arg-type]
ON, OFF = {"factor": 3.0}, None
NEVER = "the workload did not record that it began to send with the fault"
EARLY = "the workload was sent without the fault from record 70 on"


def recorded(*changes: tuple[float, Any], fault: str = "surge") -> Story:
    """A fault called at 1 s, in effect at 3 s, whose heal is called at 5 s and verified at 7 s."""
    steered = [
        (at_s, Action.WORKLOAD_STEERED, {"disturbance": fault, "parameters": parameters})
        for at_s, parameters in changes
    ]
    events: list[tuple[float, Action, dict[str, Any]]] = [
        (1.0, Action.FAULT_CALLED, {"step": 0, "fault": "surge"}),
        (3.0, Action.FAULT_IN_EFFECT, {"step": 0, "fault": "surge", "seen_ns": 3 * 10**9}),
        (5.0, Action.HEAL_CALLED, {"step": 0}),
        (7.0, Action.FAULT_HEALED, {"step": 0}),
    ]
    story = Story()
    for at_s, action, fields in sorted([*events, *steered], key=lambda event: event[0]):
        more = {"at_record": int(at_s * 20)} if action == Action.WORKLOAD_STEERED else {}
        story.at(at_s, action, **fields, **more)
    return story


def messages(story: Story, step: Step = SURGE) -> list[str]:
    history = story.history()
    return list(contradicted_load(step, last_attempt(history, 0), history))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(2, ON), (6, OFF)], []),
        ([(2, ON)], []),  # the load finished first
        ([(2, ON), (8, ON)], []),  # another injection
        ([], [NEVER]),
        ([(4, ON), (6, OFF)], [NEVER]),
        ([(0.5, ON), (6, OFF)], [NEVER]),
        ([(2, ON), (2.5, ON), (6, OFF)], [NEVER]),
        ([(2, {"factor": 2.0}), (6, OFF)], ["the workload was sent with {'factor': 2.0}"]),
        ([(2, ON), (3.5, OFF)], [EARLY]),
        ([(2, ON), (3.5, OFF), (4, ON), (6, OFF)], [NEVER, EARLY]),
    ],
)
def test_the_load_has_the_fault_from_its_injection_to_its_heal(
    changes: list[tuple[float, Any]], expected: list[str]
) -> None:
    assert messages(recorded(*changes)) == expected


def test_another_fault_of_the_load_is_not_compared() -> None:
    assert messages(recorded((2, ON), (6, OFF), fault="skew")) == [NEVER]


@pytest.mark.parametrize(("off_record", "sent"), [(41, True), (40, False), (7, False)])
def test_records_are_sent_with_the_fault(off_record: int, sent: bool) -> None:
    story = Story()
    for event in recorded((2, ON), (6, OFF)).history():
        is_off = event.action == Action.WORKLOAD_STEERED and event.value["parameters"] is None
        changed = {"at_record": off_record} if is_off else {}
        story.at(event.at_s, event.action, **{**event.value, **changed})
    message = "the workload sent no record with the fault, from record 40 on"
    assert messages(story) == [message] * (not sent)


def test_without_a_heal_no_end_is_early() -> None:
    story = Story()
    for event in recorded((2, ON), (6, OFF), (8, ON)).history():
        if event.action != Action.FAULT_HEALED:
            story.at(event.at_s, event.action, **event.value)
    assert messages(story) == [NEVER], "the load has it twice"


def test_parameters_without_a_value_are_not_sent() -> None:
    step = SURGE.model_copy(update={"fault": "skew", "params": {"hot_share": 0.5}})
    story = recorded((2, {"hot_share": 0.5}), (6, OFF), fault="skew")
    assert messages(story, step) == []


def test_other_faults_change_no_load() -> None:
    assert messages(recorded(), KILL) == []


def test_without_its_call_nothing_is_compared() -> None:
    story = Story().at(3, Action.FAULT_IN_EFFECT, step=0, seen_ns=3 * 10**9)
    assert messages(story) == []
