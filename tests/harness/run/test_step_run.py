"""The state of one step: when its heal is due, and how late its effect was."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.harness.run.step_run import StepRun, StepState

PAUSE = Step(fault="pause", target="flink/taskmanager-1", when=TriggerSpec(after_s=1))


def step_run(due_ns: int | None = 10**9) -> StepRun:
    trigger: Any = SimpleNamespace(due_ns=due_ns, wait_again=lambda: None)
    baselines: Any = None
    return StepRun(0, PAUSE, trigger, random.Random(0), baselines)


def test_a_heal_is_due_at_its_moment() -> None:
    run = step_run()
    assert not run.heal_is_due(10**12)
    run.heal_due_ns = 5
    assert [run.heal_is_due(now_ns) for now_ns in (4, 5, 6)] == [False, True, True]


@pytest.mark.parametrize(
    ("due_ns", "effect_ns", "expected"),
    [
        (10**9, 3_000_000_000, {"due_ns": 10**9, "lateness_ms": 2000.0}),
        (10**9, 10**9 + 1_234_567, {"due_ns": 10**9, "lateness_ms": 1.235}),
        (None, 3_000_000_000, {}),
        (10**9, None, {}),
        (None, None, {}),
    ],
)
def test_the_lateness_needs_the_moments_of_trigger_and_effect(
    due_ns: int | None, effect_ns: int | None, expected: dict[str, Any]
) -> None:
    run = step_run(due_ns)
    run.effect_times_ns = None if effect_ns is None else (0, effect_ns)
    assert run.lateness() == expected


def test_a_step_that_waits_again_keeps_nothing_of_its_former_try() -> None:
    run, new = step_run(), step_run()
    run.state, run.effect_times_ns, run.heal_due_ns = StepState.ACTIVE, (1, 2), 3
    run.verified_ns, run.in_place_ns, run.has_missed_window = 4, 5, True
    run.reset_for_retry()
    moments = ("effect_times_ns", "heal_due_ns", "verified_ns", "in_place_ns")
    names = ("state", "targets", "intent", *moments)
    assert [getattr(run, name) for name in names] == [getattr(new, name) for name in names]
    assert not run.has_missed_window
