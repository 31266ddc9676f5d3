"""How long before the heal a fault was verified last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.checks.effect import Effect
from streamquake.harness.verdict.evidence.last_verification import not_verified_until_heal
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import Outcome
from tests.harness.histories import KILL, KILLED, RESTARTED, Story, case

NODE = "flink/taskmanager-1"
IDLE: dict[str, Any] = {"in_place_ns": 38 * 10**9}


def acted(verified_s: float, story: Story | None = None, **heal: Any) -> Story:
    """A fault in effect from 1 s, verified last at one moment and healed at 40 s."""
    about = {"step": 0, "fault": "kill", "target": KILL["target"], "nodes": [NODE]}
    story = (story or Story()).at(1, Action.FAULT_CALLED, **about, params={})
    seen: dict[str, Any] = {"seen_ns": 10**9, "evidence": {NODE: KILLED}}
    story.at(1, Action.FAULT_IN_EFFECT, **about, **seen)
    last = {**seen, "seen_ns": int(verified_s * 1e9)}
    story.at(verified_s, Action.FAULT_STILL_IN_EFFECT, **about, **last)
    story.at(40, Action.HEAL_CALLED, **about, last_seen_ns=last["seen_ns"], **heal)
    healed = {"seen_ns": 41 * 10**9, "evidence": {NODE: RESTARTED}}
    return story.at(41, Action.FAULT_HEALED, **about, **healed)


def message_of(fault: str, story: Story) -> str:
    history = story.history()
    step = Step(fault=fault, target=NODE, when={"after_s": 1})  # type: ignore[arg-type]
    return not_verified_until_heal(step, last_attempt(history, 0), history)


@pytest.mark.parametrize(
    ("fault", "verified_s", "heal", "unverified"),
    [
        ("slow_operator", 38, {}, False),
        ("slow_operator", 24.1, {}, False),  # room for two failed checks, and the tolerance
        ("slow_operator", 23.9, {}, True),
        ("slow_operator", 2, IDLE, False),
        ("slow_operator", 2, {"in_place_ns": 23 * 10**9}, True),
        ("slow_link", 2, {}, False),  # an older record of a link that was idle
        ("slow_link", 2, IDLE, False),
        ("slow_link", 2, {"in_place_ns": 2 * 10**9}, True),
        ("slow_link", 38, {"in_place_ns": 2 * 10**9}, False),
        ("slow_operator", 2, {"last_seen_ns": None}, False),  # a still older record
        ("throw_in_task", 2, {}, False),  # nothing of it lasts
        ("a fault of another package", 2, {}, False),
    ],
)
def test_a_fault_is_verified_until_shortly_before_its_heal(
    fault: str, verified_s: float, heal: dict[str, Any], unverified: bool
) -> None:
    story = acted(verified_s)
    changed = Story()
    for event in story.history():
        added = heal if event.action == Action.HEAL_CALLED else {}
        changed.at(event.at_s, event.action, **{**event.value, **added})
    found = message_of(fault, changed)
    assert bool(found) == unverified
    assert not unverified or found.startswith("the record has no check that found it in effect or")


@pytest.mark.parametrize(
    ("fault", "node", "healed_s", "unverified"),
    [
        ("kill", NODE, 20.0, False),
        ("kill", "flink/taskmanager-2", 20.0, True),
        ("kill", NODE, 0.9, True),
        ("slow_disk", NODE, 20.0, True),
    ],
)
def test_a_node_that_another_step_kept_down_could_not_be_verified(
    fault: str, node: str, healed_s: float, unverified: bool
) -> None:
    other = {"step": 1, "fault": fault, "target": node, "nodes": [node]}
    story = Story().at(0.1, Action.FAULT_CALLED, **other)
    story.at(healed_s, Action.FAULT_HEALED, **other, seen_ns=int(healed_s * 1e9), evidence={})
    assert bool(message_of("slow_operator", acted(2, story))) == unverified


def test_only_the_first_call_of_a_heal_counts() -> None:
    story = acted(38).at(80, Action.HEAL_CALLED, step=0, last_seen_ns=38 * 10**9)
    assert message_of("slow_operator", story) == ""


def test_a_fault_that_ended_early_has_that_reason_only() -> None:
    story = Story()
    for event in acted(2).history():
        if event.action == Action.HEAL_CALLED:
            story.at(3, Action.FAULT_ENDED_EARLY, step=0, seen_ns=3 * 10**9, reason="gone")
        story.at(event.at_s, event.action, **event.value)
    assert message_of("slow_operator", story) == ""


@pytest.mark.parametrize(
    ("called_s", "unverified"), [(None, False), (17.5, False), (18.5, True), (40, True)]
)
def test_a_heal_without_its_call_is_dated_by_its_verification(
    called_s: float | None, unverified: bool
) -> None:
    """Verified last at 2 s; 16 s later is too late. `heal called` is missing."""
    story = Story()
    for event in acted(2).history():
        called = None if called_s is None else int(called_s * 1e9)
        added = {"called_ns": called} if event.action == Action.FAULT_HEALED else {}
        if event.action != Action.HEAL_CALLED:
            story.at(event.at_s, event.action, **{**event.value, **added})
    assert bool(message_of("slow_operator", story)) == unverified


def test_a_fault_without_a_late_verification_makes_the_run_undecided(tmp_path: Path) -> None:
    assert Effect().check(case(acted(38), tmp_path)).outcome == Outcome.HELD
    result = Effect().check(case(acted(2), tmp_path))
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "faults[0] not verified again: the record has no check that found it in effect or in place "
        "in the 38.0 s before its heal",
    )
