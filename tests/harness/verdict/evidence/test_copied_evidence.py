"""Evidence of one node that is that of another."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.copied_evidence import copied_evidence
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.reports.record.event import Action
from tests.harness.histories import Story

STARTED, LATER = "2026-11-30T19:44:29.366242218Z", "2026-11-30T19:44:29.366242219Z"
BROKER, WORKER = "kafka/broker-1", "flink/taskmanager-1"


def in_effect(story: Story, step: int, node: str, started_at: object) -> Story:
    about = {"step": step, "fault": "kill", "target": node, "nodes": [node]}
    story.at(10 + step, Action.FAULT_CALLED, **about)
    evidence = {"watched": "pidfd", node: {"pid": 0, "started_at": started_at}}
    return story.at(10.5 + step, Action.FAULT_IN_EFFECT, **about, evidence=evidence)


@pytest.mark.parametrize(
    ("node", "first", "second", "copied"),
    [
        (BROKER, STARTED, STARTED, True),
        (BROKER, STARTED, LATER, False),
        # Two faults of one process, such as a pause and a kill.
        (WORKER, STARTED, STARTED, False),
        # Stamps of seconds may be equal by chance, and others may be missing.
        (BROKER, "2026-11-30T19:44:29Z", "2026-11-30T19:44:29Z", False),
        (BROKER, None, None, False),
        (BROKER, 7, 7, False),
    ],
)
def test_two_nodes_do_not_share_a_process(
    node: str, first: object, second: object, copied: bool
) -> None:
    history = in_effect(in_effect(Story(), 0, WORKER, first), 1, node, second).history()

    found = list(copied_evidence(last_attempt(history, 1), history))

    message = f"the evidence of {node} is that of {WORKER}: its process started at {second}"
    assert found == [message] * copied
    assert list(copied_evidence(last_attempt(history, 0), history)) == []


def test_two_nodes_of_one_fault_do_not_share_a_process() -> None:
    story = Story()
    state = {"started_at": STARTED, "before": {"started_at": STARTED}}
    for at_s, action in ((10, Action.FAULT_IN_EFFECT), (11, Action.FAULT_STILL_IN_EFFECT)):
        story.at(at_s, action, step=0, evidence={"watched": "api", WORKER: state, BROKER: state})
    history = story.history()
    message = f"the evidence of {BROKER} is that of {WORKER}: its process started at {STARTED}"
    assert list(copied_evidence(last_attempt(history, 0), history)) == [message]


@pytest.mark.parametrize(
    ("node", "before", "copied"),
    [
        (BROKER, {"started_at": STARTED}, True),
        (WORKER, {"started_at": STARTED}, False),  # what the heal started was ended next
        (BROKER, {"started_at": LATER}, False),
        (BROKER, "running", False),
    ],
)
def test_a_process_that_a_heal_started_is_not_that_of_another_node(
    node: str, before: object, copied: bool
) -> None:
    story = Story().at(9, Action.FAULT_IN_EFFECT, step=0, evidence={WORKER: {"pid": 0}})
    story.at(10, Action.FAULT_HEALED, step=0, evidence={WORKER: {"started_at": STARTED}})
    story.at(12, Action.FAULT_IN_EFFECT, step=1, evidence={node: {"pid": 0, "before": before}})
    history = story.history()
    message = f"the evidence of {node} is that of {WORKER}: its process started at {STARTED}"
    assert list(copied_evidence(last_attempt(history, 1), history)) == [message] * copied
