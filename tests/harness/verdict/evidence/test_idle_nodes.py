"""A fault where no task ran disturbed nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.effect import Effect
from streamquake.harness.verdict.evidence.idle_nodes import nodes_without_tasks
from streamquake.reports.record.event import Action
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.outcome import Outcome
from tests.harness.histories import Story, case

FIRST, SECOND, THIRD = (f"flink/taskmanager-{n}" for n in (1, 2, 3))
CALLED_S = 20.0


def moved(*places: tuple[float, int, str | None], **more: Any) -> Story:
    """A job whose subtasks were deployed as (moment, subtask, node)."""
    recorded = Story()
    attempts = dict[int, int]()
    for at_s, subtask, node in places:
        attempts[subtask] = attempts.get(subtask, -1) + 1
        about = {"vertex": "c", "vertex_name": "Count", "subtask": subtask, "node": node, **more}
        about |= {"state": "RUNNING", "attempt": attempts[subtask]}
        recorded.at(at_s, Action.TASK_CHANGED, **about)
    return recorded


def injected(recorded: Story, nodes: list[str], fault: str = "kill") -> Story:
    """Called at 20 s, healed at 25 s."""
    ns = {"called_ns": int(CALLED_S * 1e9), "seen_ns": int(CALLED_S * 1e9)}
    about = {"step": 0, "fault": fault, "nodes": nodes}
    recorded.at(CALLED_S, Action.FAULT_CALLED, **about)
    recorded.at(CALLED_S, Action.FAULT_IN_EFFECT, **about, **ns, evidence={})
    return recorded.at(CALLED_S + 5, Action.FAULT_HEALED, step=0)


def idle(recorded: Story) -> tuple[str, ...]:
    history = recorded.history()
    return nodes_without_tasks(history.of(FaultInEffect)[0], history)


PLACED = ((1.0, 0, FIRST), (1.0, 1, SECOND))


@pytest.mark.parametrize(
    ("nodes", "fault", "found"),
    [
        ([THIRD], "kill", (THIRD,)),
        ([THIRD], "isolate", (THIRD,)),
        ([THIRD], "pause", (THIRD,)),
        ([FIRST], "kill", ()),
        ([FIRST, THIRD], "kill", ()),
        (["kafka/broker-1"], "kill", ()),
        ([THIRD, "kafka/broker-1"], "kill", ()),
        ([THIRD], "cpu_limit", ()),
    ],
)
def test_nodes_are_idle_if_none_of_them_ran_a_task(
    nodes: list[str], fault: str, found: tuple[str, ...]
) -> None:
    assert idle(injected(moved(*PLACED), nodes, fault)) == found


def test_a_node_from_which_the_tasks_moved_is_idle() -> None:
    """The first kill moved the tasks; the next attempt of the step kills the same node."""
    assert idle(injected(moved(*PLACED, (10, 0, SECOND)), [FIRST])) == (FIRST,)
    assert idle(injected(moved(*PLACED, (30, 0, SECOND)), [FIRST])) == ()


def test_a_task_of_unknown_place_may_have_been_there() -> None:
    assert idle(injected(moved(*PLACED, (2, 2, None)), [THIRD])) == ()


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize(("node", "is_idle"), [(FIRST, False), (THIRD, True)])
def test_a_run_in_which_only_an_idle_node_was_killed_is_undecided(
    node: str, is_idle: bool, allowed: bool, tmp_path: Path
) -> None:
    """Also where idle faults are allowed: one fault must disturb the system."""
    result = Effect(idle_allowed=allowed).check(case(injected(moved(*PLACED), [node]), tmp_path))
    whys = [f.detail["reason"] for f in result.findings if f.what == "without effect on the system"]
    assert bool(whys) == is_idle
    assert all(f"no task of the job ran on {node}" in why for why in whys)
    assert result.outcome == Outcome.UNDECIDED or not is_idle
