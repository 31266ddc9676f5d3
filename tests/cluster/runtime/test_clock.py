"""Clocks: another run counts from zero, while wall-clock time continues."""

from __future__ import annotations

import time

import pytest

from streamquake.cluster.runtime.clock import Clock, FakeClock, SystemClock, on_run_clock_ns


@pytest.mark.parametrize("clock", [FakeClock(), SystemClock()])
def test_a_run_begins_at_zero_and_the_wall_clock_continues(clock: Clock) -> None:
    clock.sleep(0.02)
    began_ns = time.monotonic_ns()
    before_ns, wall_ns = clock.now_ns(), clock.epoch_ns()
    clock.restart()
    now_ns, then_ns = clock.now_ns(), on_run_clock_ns(clock, wall_ns)
    took_ns = time.monotonic_ns() - began_ns  # on a busy machine long
    assert before_ns >= 20_000_000
    assert now_ns <= took_ns
    assert clock.epoch_ns() >= wall_ns - 1_000_000
    assert -took_ns - 1_000_000 <= then_ns <= 1_000_000


def test_a_wall_clock_that_is_set_is_seen_until_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    assert abs(clock.set_by_ns()) < 50_000_000
    real_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() - 5_000_000_000)
    assert clock.set_by_ns() == pytest.approx(-5e9, abs=50e6)
    clock.restart()
    assert abs(clock.set_by_ns()) < 50_000_000


def test_the_fake_wall_clock_can_be_set() -> None:
    clock = FakeClock()
    clock.wall_clock_set_by_ns, before_ns = -5_000_000_000, clock.epoch_ns()
    assert (clock.set_by_ns(), clock.epoch_ns()) == (-5_000_000_000, before_ns)
    clock.restart()
    assert (clock.set_by_ns(), clock.epoch_ns()) == (0, before_ns - 5_000_000_000)
