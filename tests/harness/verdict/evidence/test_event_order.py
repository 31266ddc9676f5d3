"""The order of a fault's events, and of the moments in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.effect import Effect
from streamquake.harness.verdict.evidence.event_order import disordered_events
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import Outcome
from tests.harness.histories import Story, case

CALLED, BEGAN, STILL = (
    Action.FAULT_CALLED,
    Action.FAULT_IN_EFFECT,
    Action.FAULT_STILL_IN_EFFECT,
)
HEAL, HEALED, NOT_HEALED = Action.HEAL_CALLED, Action.FAULT_HEALED, Action.FAULT_NOT_HEALED
USUAL = (CALLED, BEGAN, STILL, STILL, HEAL, HEALED)


def recorded(*actions: Action, **effect: Any) -> Story:
    """Events one second apart, observed when they are recorded; `effect` are fields of the
    effect."""
    story = Story()
    for at_s, action in enumerate(actions, start=1):
        seen = {"called_ns": at_s * 10**9, "seen_ns": at_s * 10**9}
        fields = seen if action in (BEGAN, HEALED) else {}
        changed = effect if action == BEGAN else {}
        story.at(at_s, action, step=0, **{**fields, **changed})
    return story


def messages(story: Story) -> list[str]:
    return list(disordered_events(0, story.history()))


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (USUAL, []),
        ((CALLED, BEGAN, HEAL, NOT_HEALED, HEAL, HEALED), []),
        ((CALLED, BEGAN, Action.FAULT_MISSED_WINDOW, HEAL, HEALED, *USUAL), []),
        ((CALLED, BEGAN, HEAL, HEALED, Action.FAULT_SKIPPED), []),
        ((CALLED, Action.FAULT_NOT_IN_EFFECT, HEAL, HEALED), []),
        ((CALLED, Action.FAULT_NOT_IN_EFFECT, *USUAL), []),
        ((*USUAL, HEAL, HEALED), ["`heal called` is recorded after", "`fault healed` is recorded"]),
        ((*USUAL, STILL), ["`fault still in effect` is recorded after its heal"]),
        ((CALLED, BEGAN, BEGAN, HEAL, HEALED), ["`fault in effect` is recorded twice"]),
        ((CALLED, BEGAN, HEAL, HEAL, HEALED), ["`heal called` is recorded twice"]),
        (
            (CALLED, BEGAN, HEAL, NOT_HEALED, HEAL, HEAL, HEALED),
            ["`heal called` is recorded twice"],
        ),
        ((CALLED, BEGAN, *USUAL), ["its injection was called again before its heal"]),
    ],
)
def test_events_are_recorded_once_and_in_their_order(
    actions: tuple[Action, ...], expected: list[str]
) -> None:
    found = messages(recorded(*actions))
    assert len(found) == len(expected)
    assert all(message.startswith(text) for message, text in zip(found, expected, strict=True))


def test_events_of_other_steps_are_not_compared() -> None:
    story = Story()
    for at_s, action in enumerate(USUAL, start=1):
        story.at(at_s, action, step=1, seen_ns=at_s * 10**9)
    for at_s, action in enumerate((*USUAL, STILL), start=10):
        story.at(at_s, action, step=0, seen_ns=at_s * 10**9)
    assert messages(story) == ["`fault still in effect` is recorded after its heal"]


def test_an_effect_without_a_recorded_call_is_compared_with_its_due_moment() -> None:
    effect = {"called_ns": 10**9, "seen_ns": 2 * 10**9, "due_ns": 3 * 10**9}
    story = Story().at(2, BEGAN, step=0, **effect)
    assert messages(story) == ["it is recorded to have acted 2.0 s before it was due"]


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        ({"called_ns": 990_000_000}, []),  # the two clocks are rounded
        ({"called_ns": 500_000_000}, ["it is recorded to have acted 0.5 s before its call"]),
        ({"called_ns": None}, []),
        ({"due_ns": 2_010_000_000}, []),
        ({"due_ns": 3_000_000_000}, ["it is recorded to have acted 1.0 s before it was due"]),
        ({"due_ns": 10**9, "lateness_ms": 1001.0}, []),
        ({"due_ns": 10**9, "lateness_ms": 0}, ["its delay is recorded as 0 ms, and it was 1,000 "]),
        ({"due_ns": 10**9, "lateness_ms": -5000}, ["its delay is recorded as -5,000 ms, and it "]),
        ({"due_ns": 10**9, "seen_ns": None, "lateness_ms": 0}, []),
    ],
)
def test_the_moments_of_an_effect_agree(effect: dict[str, Any], expected: list[str]) -> None:
    """It was called at 1 s, and seen at 2 s."""
    found = messages(recorded(*USUAL, **effect))
    assert len(found) == len(expected)
    assert all(message.startswith(text) for message, text in zip(found, expected, strict=True))


@pytest.mark.parametrize(("called_ns", "early"), [(6_100_000_000, ""), (66 * 10**9, "60.0 s")])
def test_a_removal_is_seen_after_its_heal_acted(called_ns: int, early: str) -> None:
    story = recorded(*USUAL[:-1])
    story.at(6, HEALED, step=0, called_ns=called_ns, seen_ns=6 * 10**9)
    message = f"its removal was seen {early} before its heal acted"
    assert messages(story) == [message] * bool(early)


@pytest.mark.parametrize(
    ("in_place_ns", "early_s"), [(4 * 10**9, ""), (2 * 10**9, ""), (-7, "2.0"), (None, "")]
)
def test_a_fault_is_found_in_place_after_its_effect(in_place_ns: int | None, early_s: str) -> None:
    """A heal that names no such moment is of an older record, or had nothing to undo."""
    story = recorded(*USUAL[:-2]).at(5, HEAL, step=0, in_place_ns=in_place_ns)
    message = f"it is recorded as last found in place {early_s} s before its effect"
    assert messages(story) == [message] * bool(early_s)


def test_a_disordered_record_is_undecided(tmp_path: Path) -> None:
    story = Story().effect(1).at(2, HEALED, step=0).at(3, STILL, step=0)
    result = Effect().check(case(story, tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert "`fault still in effect` is recorded after its heal" in result.summary
