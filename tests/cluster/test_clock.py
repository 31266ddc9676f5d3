"""Clocks: another run counts from nought, while wall-clock time goes on."""

from __future__ import annotations

import pytest

from streamquake.cluster.clock import Clock, FakeClock, SystemClock, on_run_clock_ns


@pytest.mark.parametrize("clock", [FakeClock(), SystemClock()])
def test_a_run_begins_at_nought_and_the_wall_clock_goes_on(clock: Clock) -> None:
    clock.sleep(0.02)
    before_ns, wall_ns = clock.now_ns(), clock.epoch_ns()
    clock.restart()
    assert clock.now_ns() < before_ns
    assert clock.epoch_ns() >= wall_ns - 1_000_000
    assert abs(on_run_clock_ns(clock, wall_ns)) < 10_000_000
