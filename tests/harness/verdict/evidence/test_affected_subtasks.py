"""The subtasks that a fault affected, by its evidence and the job's failures."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.affected_subtasks import (
    acted_elsewhere,
    affected_subtasks_of,
    must_end_tasks,
    ran_elsewhere,
    unplaced_subtasks,
)
from streamquake.reports.record.event import Action
from streamquake.reports.record.fault_events import FaultInEffect
from tests.harness.histories import Story

INJECTED_S = 20.0


def placed(*, named: bool = True) -> Story:
    """A source and a counter on one machine, another counter beside it."""
    recorded = Story()
    for vertex, name, subtask, node in (
        ("s", "Source: input", 0, "tm-1"),
        ("c", "Count -> Sink", 0, "tm-1"),
        ("c", "Count -> Sink", 1, "tm-2"),
    ):
        more = {"state": "RUNNING", **({"vertex_name": name} if named else {})}
        recorded.at(2, Action.TASK_CHANGED, vertex=vertex, subtask=subtask, node=node, **more)
    return recorded


def failing(reported: Story, at_s: float, task: str | None, **more: Any) -> Story:
    return reported.at(at_s, Action.JOB_FAILING, task=task, **more)


def affected_subtasks(
    reported: Story, fault: str = "throw_in_task", **value: Any
) -> set[tuple[str, int]]:
    """Called at 20 s, and verified in effect at 22 s."""
    ns = {"called_ns": int(INJECTED_S * 1e9), "seen_ns": int(22e9)}
    about = {"step": 0, "fault": fault, "nodes": ["tm-1"], **ns, **value}
    reported.at(22, Action.FAULT_IN_EFFECT, **about)
    history = reported.history()
    return affected_subtasks_of(history.of(FaultInEffect)[0], history)


COUNTER, SOURCE = "Count -> Sink (1/2) - execution #0", "Source: input (1/1)"


def test_the_failures_since_the_call_name_the_tasks() -> None:
    recorded = failing(failing(placed(), 20.0, COUNTER, cause="a"), 21, SOURCE, cause="a")
    assert affected_subtasks(recorded) == {("c", 0), ("s", 0)}


def test_earlier_failures_and_failures_without_a_task_are_ignored() -> None:
    recorded = failing(failing(placed(), 19, SOURCE, cause="a"), 20.5, None, cause="a")
    assert affected_subtasks(failing(recorded, 21, COUNTER, cause="a")) == {("c", 0)}


def test_failures_without_a_cause_count_as_one_cause() -> None:
    recorded = failing(failing(placed(), 21, COUNTER), 21.5, SOURCE, cause="")
    assert affected_subtasks(recorded) == {("c", 0), ("s", 0)}


def test_without_a_recorded_call_the_observed_effect_counts() -> None:
    recorded = failing(failing(placed(), 21, SOURCE, cause="a"), 22, COUNTER, cause="a")
    about = {"step": 0, "fault": "throw_in_task", "nodes": ["tm-1"], "seen_ns": int(22e9)}
    recorded.at(22, Action.FAULT_IN_EFFECT, **about)
    history = recorded.history()
    assert affected_subtasks_of(history.of(FaultInEffect)[0], history) == {("c", 0)}


@pytest.mark.parametrize(
    ("target", "elsewhere"),
    [
        ("the node running subtask 0 of Count", ""),
        ("the node running subtask 0 of input", ""),
        ("the node running subtask 1 of Count", "subtask 1 of Count ran on tm-2"),
        ("the node running subtask 1 of Sink", "subtask 1 of Sink ran on tm-2"),
        ("the node running subtask 7 of Count", ""),  # not recorded
        ("the node running subtask 0 of Join", ""),
        ("the active jobmanager", ""),
        ("tm-1", ""),
    ],
)
def test_a_target_names_the_node_of_a_subtask(target: str, elsewhere: str) -> None:
    recorded = Story()
    for event in placed().history():
        recorded.at(event.at_s, event.action, **event.value)
    recorded.at(21, Action.TASK_CHANGED, vertex="c", subtask=0, node="tm-2", state="RUNNING")
    about = {"step": 0, "nodes": ["tm-1"], "called_ns": int(20e9), "seen_ns": int(22e9)}
    history = recorded.at(22, Action.FAULT_IN_EFFECT, **about).history()
    assert ran_elsewhere(target, history.of(FaultInEffect)[0], history) == elsewhere


def test_a_task_that_had_finished_is_not_affected() -> None:
    recorded, about = Story(), {"vertex": "c", "attempt": 0, "node": "tm-1"}
    for at_s, subtask, state in ((2, 0, "RUNNING"), (2, 1, "RUNNING"), (19, 0, "FINISHED")):
        recorded.at(at_s, Action.TASK_CHANGED, subtask=subtask, state=state, **about)
    assert affected_subtasks(recorded, "kill") == {("c", 1)}


def test_a_task_placed_after_the_call_is_not_affected() -> None:
    about = {"vertex": "c", "subtask": 1, "node": "tm-1", "state": "RUNNING"}
    recorded = placed().at(21, Action.TASK_CHANGED, **about)
    assert affected_subtasks(recorded, "kill") == {("s", 0), ("c", 0)}


@pytest.mark.parametrize(
    ("evidence", "found"),
    [
        ({"tm-1": {"at": ["Count subtask 0", "strange"]}}, {("c", 0)}),
        ({"tm-1": {"at": ["Count subtask 1"]}}, set()),
        ({"tm-1": {"hits": 3}, "watched": "agent"}, set()),
        (None, set()),
    ],
)
def test_without_failures_the_faults_own_evidence_names_the_subtasks(
    evidence: dict[str, Any] | None, found: set[tuple[str, int]]
) -> None:
    assert affected_subtasks(placed(), evidence=evidence) == found


def test_a_vertex_without_a_name_goes_by_its_id() -> None:
    assert affected_subtasks(failing(placed(named=False), 21, "c (1/2)", cause="a")) == {("c", 0)}


@pytest.mark.parametrize(
    ("fault", "must"),
    [
        ("kill", True),
        ("partition", True),
        ("throw_in_task", True),
        ("fail_checkpoint", False),
        ("slow_operator", False),
        ("cpu_limit", False),
        (None, True),
    ],
)
def test_some_faults_must_end_tasks(fault: str | None, must: bool) -> None:
    named = {} if fault is None else {"fault": fault}
    (injected,) = Story().at(2, Action.FAULT_IN_EFFECT, step=0, **named).history().of(FaultInEffect)
    assert must_end_tasks(injected) is must


@pytest.mark.parametrize(("attempt", "found"), [(0, {("s", 0), ("c", 0)}), (1, {("s", 0)})])
def test_a_null_node_keeps_the_earlier_node_of_the_same_attempt(
    attempt: int, found: set[tuple[str, int]]
) -> None:
    recorded, about = Story(), {"subtask": 0, "state": "RUNNING"}
    for vertex in "sc":
        recorded.at(2, Action.TASK_CHANGED, vertex=vertex, attempt=0, node="tm-1", **about)
    recorded.at(3, Action.TASK_CHANGED, vertex="c", attempt=attempt, node=None, **about)
    assert affected_subtasks(recorded, "kill") == found


@pytest.mark.parametrize(
    ("events", "fault", "unplaced"),
    [
        ([("RUNNING", None)], "kill", True),
        ([("RUNNING", "")], "kill", True),
        ([("SCHEDULED", None), ("RUNNING", None)], "kill", True),
        ([("DEPLOYING", "")], "kill", True),
        ([("DEPLOYING", "tm-1"), ("RUNNING", None)], "kill", False),
        ([("RUNNING", "tm-2")], "kill", False),
        ([("SCHEDULED", "")], "kill", False),
        ([("CANCELED", "")], "kill", False),
        ([("RUNNING", None)], "throw_in_task", False),
        ([("RUNNING", None)], None, True),
    ],
)
def test_a_running_subtask_without_a_node_may_be_affected(
    events: list[tuple[str, str | None]], fault: str | None, unplaced: bool
) -> None:
    """A subtask that waits for its deployment is on no node."""
    recorded = Story()
    for at_s, (state, node) in enumerate(events):
        at = {"vertex": "c", "subtask": 0, "attempt": 0, "node": node, "state": state}
        recorded.at(at_s, Action.TASK_CHANGED, **at)
    later = {"vertex": "c", "subtask": 1, "attempt": 0, "node": None, "state": "RUNNING"}
    recorded.at(INJECTED_S + 1, Action.TASK_CHANGED, **later)
    about = {} if fault is None else {"fault": fault}
    recorded.at(22, Action.FAULT_IN_EFFECT, step=0, called_ns=int(INJECTED_S * 1e9), **about)
    history = recorded.history()
    found = unplaced_subtasks(history.of(FaultInEffect)[0], history)
    assert found == ({("c", 0)} if unplaced else set())


@pytest.mark.parametrize(
    ("place", "ran_on"),
    [
        ("Count subtask 0", ""),
        ("Sink subtask 0", ""),  # a part of the task's name
        ("Count subtask 1", "tm-2"),
        ("Count subtask 7", "no node"),
        ("Map subtask 0", ""),  # the record has no such task
        ("Count (1/2)#0", ""),  # the name of a thread
        (None, ""),
    ],
)
def test_a_rule_acts_where_its_subtask_runs(place: str | None, ran_on: str) -> None:
    found = acted_at(placed(), place)
    message = f"its rule acted in {place} on tm-1, which ran on {ran_on}"
    assert found == [message] * bool(ran_on)


def acted_at(reported: Story, place: str | None) -> list[str]:
    """A rule that acted on `tm-1`, as recorded at 22 s."""
    evidence = {"watched": "agent", "tm-3": {"at": None}, "tm-1": {"at": ["a thread", place]}}
    ns = {"called_ns": int(INJECTED_S * 1e9), "seen_ns": int(22e9)}
    reported.at(22, Action.FAULT_IN_EFFECT, step=0, nodes=["tm-1"], **ns, evidence=evidence)
    history = reported.history()
    return list(acted_elsewhere(history.of(FaultInEffect)[0], history))


@pytest.mark.parametrize(
    ("at_s", "node", "ran_on"),
    [
        (21, "tm-1", ""),  # the failed subtask was restarted on another node
        (21, None, ""),
        (22, "tm-1", ""),
        (23, "tm-1", "tm-2"),
        (21, "tm-4", "tm-2, tm-4"),
    ],
)
def test_a_subtask_may_have_moved_before_the_effect_was_recorded(
    at_s: float, node: str | None, ran_on: str
) -> None:
    moved = {"vertex": "c", "subtask": 1, "vertex_name": "Count -> Sink", "attempt": 1}
    story = Story()
    events = [(e.at_s, e.action, e.value) for e in placed().history()]
    for when_s, action, value in [*events, (at_s, Action.TASK_CHANGED, {**moved, "node": node})]:
        story.at(when_s, action, **value)
    found = acted_at(story, "Count subtask 1")
    message = f"its rule acted in Count subtask 1 on tm-1, which ran on {ran_on}"
    assert found == [message] * bool(ran_on)
