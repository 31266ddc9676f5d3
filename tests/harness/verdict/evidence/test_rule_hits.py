"""The first act of a rule inside a JVM, beside the injection and the effect of its fault."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.evidence.rule_hits import (
    hits_outside_injection,
    rules_of_ended_jvms,
)
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.harness.verdict.evidence.step_problems import step_problems
from streamquake.reports.record.event import Action
from tests.harness.histories import Story, case

NODE, OTHER = "flink/taskmanager-1", "flink/taskmanager-2"
BEGAN_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def stamp(at_s: float) -> str:
    """The JVM's stamp of a moment of the run."""
    return datetime.fromtimestamp(BEGAN_S + at_s, UTC).isoformat()


def acted(first_hit: Any, skewed: bool = False) -> Story:
    """A fault called at 9 s, whose effect was seen at 10 s and recorded at 13 s."""
    story = Story().at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=(BEGAN_S + 1) * 1e3)
    about = {"step": 0, "fault": "slow_operator", "target": NODE, "nodes": [NODE]}
    story.at(9, Action.FAULT_CALLED, **about, params={"delay_ms": 5})
    if skewed:
        story.at(9, Action.FAULT_CALLED, step=1, fault="clock_skew", target=NODE, params={})
    evidence = {"watched": "agent", NODE: {"first_hit": first_hit}}
    seen = {"called_ns": 9 * 10**9, "seen_ns": 10 * 10**9, "evidence": evidence}
    return story.at(13, Action.FAULT_IN_EFFECT, **about, **seen)


def messages(story: Story) -> list[str]:
    history = story.history()
    return list(hits_outside_injection(last_attempt(history, 0), history))


@pytest.mark.parametrize(
    ("first_hit", "message"),
    [
        (stamp(9.5), ""),
        (stamp(12), ""),  # the rules act again, and their record is read later
        (stamp(8), ""),  # the two clocks are related by an observation
        (stamp(7.9), f"its rule acted on {NODE} 1.1 s before its injection was called"),
        (stamp(14), ""),
        (stamp(14.2), f"its rule acted on {NODE} 1.2 s after its effect was recorded"),
        (None, ""),
        ("soon", ""),
    ],
)
def test_a_rule_acts_between_its_injection_and_its_recorded_effect(
    first_hit: str | None, message: str
) -> None:
    assert messages(acted(first_hit)) == [message] * bool(message)


def test_a_moved_clock_proves_nothing() -> None:
    assert messages(acted(stamp(3), skewed=True)) == []


def test_a_hit_outside_the_injection_is_a_problem_of_the_step(tmp_path: Path) -> None:
    history = acted(stamp(3)).history()
    step = {"fault": "slow_operator", "target": NODE, "when": {"after_s": 1}}
    experiment = case(Story(), tmp_path).experiment.model_copy(
        update={"faults": [Step.model_validate({**step, "params": {"delay_ms": 5}})]}
    )
    problems = step_problems(last_attempt(history, 0), 0, experiment, history, idle="")
    early = f"its rule acted on {NODE} 6.0 s before its injection was called"
    assert ("contradictory evidence", early) in problems


@pytest.mark.parametrize(
    ("fault", "died_s", "node", "message"),
    [
        ("slow_operator", 14, NODE, "and its rules were verified afterwards"),
        ("slow_operator", 16, NODE, "and its rules with it, before their heal"),
        ("slow_operator", 18.5, NODE, "and its rules with it, before their heal"),
        ("slow_operator", 20, NODE, ""),  # after the call of the heal
        ("slow_operator", 12, NODE, ""),  # before the effect was recorded
        ("slow_operator", 14, OTHER, ""),
        ("throw_in_task", 18.5, NODE, ""),  # nothing of it lasts
        ("pause", 14, NODE, ""),
        ("a fault of another package", 14, NODE, ""),
    ],
)
@pytest.mark.parametrize("killed", [None, OTHER, NODE])
def test_rules_do_not_outlive_their_jvm(
    fault: str, died_s: float, node: str, message: str, killed: str | None
) -> None:
    """The heal is called at 19 s; another fault may have killed a node from 15.5 s on."""
    events: list[tuple[float, Action, dict[str, Any]]] = [
        (13, Action.FAULT_IN_EFFECT, {"step": 0, "fault": fault, "nodes": [NODE]}),
        (13.5, Action.FAULT_STILL_IN_EFFECT, {"step": 0, "evidence": {NODE: {"hits": 1}}}),
        (15, Action.FAULT_STILL_IN_EFFECT, {"step": 0, "evidence": {NODE: {"hits": 2}}}),
        (17, Action.FAULT_STILL_IN_EFFECT, {"step": 0, "evidence": {}}),
        (18, Action.FAULT_STILL_IN_EFFECT, {"step": 1, "evidence": {NODE: {"hits": 2}}}),
        (19, Action.HEAL_CALLED, {"step": 0}),
        (died_s, Action.CONTAINER_DIED, {"node": node, "exit_code": 137}),
    ]
    if killed is not None:
        kill = {"step": 2, "fault": "kill", "nodes": [killed], "seen_ns": 156 * 10**8}
        events += [(15.5, Action.FAULT_CALLED, kill), (15.6, Action.FAULT_IN_EFFECT, kill)]
    story = Story()
    for at_s, action, fields in sorted(events, key=lambda event: event[0]):
        story.at(at_s, action, **fields)
    history = story.history()
    found = list(rules_of_ended_jvms(last_attempt(history, 0), history))
    explained = killed == NODE and "before their heal" in message
    expected = f"{NODE} ended at {died_s:.1f} s, {message}"
    assert found == [expected] * bool(message and not explained)


def test_rules_that_were_not_verified_again_end_with_their_jvm() -> None:
    """Another node ends first; of the rules' own, an end before the effect does not count."""
    story = Story().at(12, Action.CONTAINER_DIED, node=NODE, exit_code=1)
    story.at(13, Action.FAULT_IN_EFFECT, step=0, fault="slow_operator", nodes=[NODE])
    story.at(14, Action.CONTAINER_DIED, node=OTHER, exit_code=1)
    story.at(15, Action.CONTAINER_DIED, node=NODE, exit_code=1)
    history = story.at(19, Action.HEAL_CALLED, step=0).history()
    found = list(rules_of_ended_jvms(last_attempt(history, 0), history))
    assert found == [f"{NODE} ended at 15.0 s, and its rules with it, before their heal"]
