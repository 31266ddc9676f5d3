"""The limits of container tests: never shorter than on an idle machine, and bounded."""

from __future__ import annotations

import os

import pytest

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.waiting import NotReadyInTime
from tests import pace


@pytest.mark.parametrize(
    ("load_per_core", "factor"), [(0.0, 1.0), (4.0, 4.0), (1_000.0, pace.MOST)]
)
def test_limits_follow_the_load(
    monkeypatch: pytest.MonkeyPatch, load_per_core: float, factor: float
) -> None:
    load = load_per_core * (os.cpu_count() or 1)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))

    measured = pace.pace.__wrapped__()

    assert factor <= measured <= pace.MOST


def test_a_wait_that_runs_out_names_its_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "pace", lambda: 3.0)
    clock = FakeClock()

    with pytest.raises(NotReadyInTime, match="the broker: not within 30 s: no leader"):
        pace.wait_until(lambda: "no leader", what="the broker", limit_s=10, clock=clock)

    assert clock.now_ns() >= 30e9
