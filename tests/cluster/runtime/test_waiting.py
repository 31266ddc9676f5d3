"""Waiting for a state: until it is reached, or to the limit with the last reason."""

from __future__ import annotations

import pytest

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until


def test_a_wait_ends_when_nothing_is_pending() -> None:
    clock, reasons = FakeClock(), iter(["starting", "almost", None])

    wait_until(lambda: next(reasons), what="x", limit_s=60, clock=clock, every_s=0.5)

    assert clock.now_ns() == int(1e9)


def test_a_wait_fails_at_its_limit_with_the_last_reason() -> None:
    clock = FakeClock()

    with pytest.raises(NotReadyInTime, match=r"x: not within 2 s: at 2\.0") as late:
        wait_until(
            lambda: f"at {clock.now_ns() / 1e9}", what="x", limit_s=2, clock=clock, every_s=0.5
        )

    assert late.value.reason == "at 2.0"


def test_an_error_ends_a_wait_at_once() -> None:
    clock = FakeClock()

    def fail() -> str:
        raise LookupError("the node died")

    with pytest.raises(LookupError, match="the node died"):
        wait_until(fail, what="x", limit_s=60, clock=clock)
    assert clock.now_ns() == 0
