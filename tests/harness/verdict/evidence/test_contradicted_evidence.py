"""Recorded observations that contradict the effect or the heal that the record concludes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.checks.effect import Effect
from streamquake.harness.verdict.evidence.contradicted_evidence import (
    contradicted_effect,
    contradicted_heal,
)
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import Outcome
from tests.harness.histories import Story, case

NODE = "flink/taskmanager-1"
DOWN = {"status": "exited", "exit_code": 137}
UP = {"status": "running", "exit_code": None}
SLOW = {"status": "running", "rules": 5, "hits": 3}
USUAL = {"bytes_per_record": 200, "largest_bytes": 210}
LARGE = {"steered": True, "acknowledged": 9, "bytes_per_record": 900, "largest_bytes": 5000}


def observed(effect: Any, later: Any = None, healed: Any = None) -> Story:
    """A fault in effect at 1 s, verified again at 2 s, and healed at 3 s."""
    evidence: dict[Action, Any] = {
        Action.FAULT_IN_EFFECT: effect,
        Action.FAULT_STILL_IN_EFFECT: effect if later is None else later,
        Action.FAULT_HEALED: healed,
    }
    story = Story()
    for at_s, (action, found) in enumerate(evidence.items(), start=1):
        value = {NODE: found, "watched": "docker"}
        story.at(at_s, action, step=0, seen_ns=at_s * 10**9, evidence=value)
    return story


def step(fault: str, params: Mapping[str, Any] | None = None) -> Step:
    given = {"fault": fault, "target": NODE, "when": {"after_s": 1}, "params": params or {}}
    return Step.model_validate(given)


def effect_messages(story: Story, planned: Step) -> list[str]:
    return list(contradicted_effect(planned, last_attempt(story.history(), 0)))


def heal_messages(story: Story, planned: Step) -> list[str]:
    return list(contradicted_heal(planned, last_attempt(story.history(), 0)))


@pytest.mark.parametrize(
    ("fault", "params", "effect", "contradiction"),
    [
        ("kill", {}, DOWN, ""),
        ("kill", {}, UP, "status: expected exited, got running"),
        ("kill", {}, {"status": "gone"}, "status: expected exited, got gone"),
        ("kill", {}, {"signal": "KILL"}, ""),  # an older record observed less
        ("kill", {}, "down", ""),
        ("oom_container", {}, {**DOWN, "oom_killed": False}, "oom_killed: expected True"),
        ("slow_operator", {"delay_ms": 5}, SLOW, ""),
        ("slow_operator", {"delay_ms": 5}, {**SLOW, "hits": 0}, "hits: expected more than 0"),
        ("isolate", {}, {"rules_laid": "in 1 of 2 namespaces"}, "rules_laid: expected a text"),
        ("isolate", {}, {"answers": {"a -> b:1": "timed out", "b -> a:1": "connected"}}, ""),
        ("isolate", {}, {"answers": {"a -> b:1": "connected"}}, "answers: expected timed out"),
        ("isolate", {"how": "reset"}, {"answers": {"a -> b:1": "refused"}}, ""),
        ("isolate", {"how": "silent"}, {"answers": {"a -> b:1": "refused"}}, "answers: expected"),
        ("clock_skew", {"offset_s": 90}, {"offset_s": 50, "before": {"offset_s": 0}}, ""),
        ("clock_skew", {"offset_s": 90}, {"offset_s": 50, "before": {"offset_s": 9}}, "offset_s"),
        ("clock_skew", {"offset_s": -90}, {"offset_s": -50}, ""),
        (
            "clock_skew",
            {"offset_s": -90},
            {"offset_s": 50, "before": 7},
            "offset_s: expected at mo",
        ),
        ("memory_limit", {"headroom_mb": 1}, {"memory_limit_bytes": 9}, ""),
        (
            "memory_limit",
            {"headroom_mb": 1},
            {"memory_limit_bytes": 9, "before": {"memory_limit_bytes": 9}},
            "memory_limit_bytes: expected less than 9, got 9",
        ),
        ("large_records", {"payload_bytes": 4000}, {**LARGE, "before": USUAL}, ""),
        ("large_records", {"payload_bytes": 6000}, {**LARGE, "before": USUAL}, "show no effect"),
        ("large_records", {"payload_bytes": 6000}, {"largest_bytes": 1}, ""),
        ("large_records", {"payload_bytes": 4000}, {**LARGE, "steered": False}, "steered: expe"),
        ("a fault of another package", {}, UP, ""),
        ("kill", {"no_such_parameter": 1}, UP, ""),
    ],
)
def test_an_observation_can_show_that_a_recorded_effect_was_none(
    fault: str, params: dict[str, Any], effect: Any, contradiction: str
) -> None:
    found = effect_messages(observed(effect), step(fault, params))
    assert bool(found) == bool(contradiction)
    assert all(contradiction in message for message in found)
    assert all(m.startswith(f"it is recorded as in effect on {NODE}, and ") for m in found)


def test_the_last_verification_is_judged_as_the_first() -> None:
    (found,) = effect_messages(observed(DOWN, later=UP), step("kill"))
    assert found.endswith("status: expected exited, got running")


@pytest.mark.parametrize(
    ("fault", "params", "healed", "contradiction"),
    [
        ("kill", {}, UP, ""),
        ("kill", {}, {"status": "gone"}, ""),
        ("kill", {}, DOWN, "status: expected running or gone, got exited"),
        ("slow_operator", {"delay_ms": 5}, SLOW, "rules: expected 0, got 5"),
        ("isolate", {}, {"rules_laid": "in 0 of 2 namespaces"}, ""),
        ("isolate", {}, {"rules_laid": "in 1 of 2 namespaces"}, "rules_laid: expected"),
        ("memory_limit", {"headroom_mb": 1}, {"memory_limit_bytes": 5}, ""),
        (
            "memory_limit",
            {"headroom_mb": 1},
            {"memory_limit_bytes": 5, "before": {"memory_limit_bytes": 9}},
            "memory_limit_bytes: expected 9 or None, got 5",
        ),
        ("clock_skew", {"offset_s": 90}, {"offset_s": 50}, "offset_s: expected at most 45, got 50"),
        ("clock_skew", {"offset_s": -90}, {"offset_s": 0}, ""),
        ("a fault of another package", {}, UP, ""),
        ("kill", {}, None, ""),
    ],
)
def test_an_observation_can_show_that_a_recorded_heal_was_none(
    fault: str, params: dict[str, Any], healed: Any, contradiction: str
) -> None:
    found = heal_messages(observed(DOWN, healed=healed), step(fault, params))
    expected = [f"it is recorded as healed on {NODE}, and {contradiction}"] if contradiction else []
    assert [message[: len(line)] for message, line in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize("action", [Action.FAULT_IN_EFFECT, Action.FAULT_HEALED])
def test_an_event_without_evidence_contradicts_nothing(action: Action) -> None:
    story = Story().at(1, action, step=0, seen_ns=1)
    assert effect_messages(story, step("kill")) == heal_messages(story, step("kill")) == []


@pytest.mark.parametrize(
    ("effect", "healed", "findings"),
    [
        (DOWN, UP, []),
        (UP, UP, ["contradictory evidence", "contradictory evidence"]),
        (DOWN, DOWN, ["contradictory evidence"]),
    ],
)
def test_the_check_of_the_effect_is_undecided(
    effect: Any, healed: Any, findings: list[str], tmp_path: Path
) -> None:
    result = Effect().check(case(observed(effect, healed=healed), tmp_path))
    assert [finding.what for finding in result.findings] == findings
    assert result.outcome == (Outcome.UNDECIDED if findings else Outcome.HELD)
