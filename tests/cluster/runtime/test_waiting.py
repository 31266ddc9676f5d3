"""Waiting: until it is so, no longer than allowed, with the last reason."""

from __future__ import annotations

import pytest

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until


def test_it_ends_as_soon_as_nothing_is_pending() -> None:
    clock, reasons = FakeClock(), iter(["starting", "almost", None])

    wait_until(lambda: next(reasons), what="x", limit_s=60, clock=clock, every_s=0.5)

    assert clock.now_ns() == int(1e9)


def test_it_gives_up_with_the_reason_seen_last() -> None:
    clock = FakeClock()

    with pytest.raises(NotReadyInTime, match=r"x: not within 2 s: at 2\.0") as late:
        wait_until(
            lambda: f"at {clock.now_ns() / 1e9}", what="x", limit_s=2, clock=clock, every_s=0.5
        )

    assert late.value.reason == "at 2.0"


def test_an_error_ends_it_at_once() -> None:
    clock = FakeClock()

    def died() -> str:
        raise LookupError("the node died")

    with pytest.raises(LookupError, match="the node died"):
        wait_until(died, what="x", limit_s=60, clock=clock)
    assert clock.now_ns() == 0
