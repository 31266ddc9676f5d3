"""The event loop: what it records by itself."""

from __future__ import annotations

from pathlib import Path

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.harness.run.event_loop import SHOW_EVERY_NS, EventLoop
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.metrics import Metrics


def test_each_change_of_the_wall_clock_is_recorded_once(tmp_path: Path) -> None:
    """Less than 50 ms is the time for reading two clocks."""
    clock = FakeClock()
    metrics = Metrics(tmp_path / "metrics.parquet")
    writer = HistoryWriter(tmp_path / "history.jsonl")
    loop = EventLoop(writer, metrics, clock, show=lambda: None)

    for by_ms in (49, 0, 1, 0, -5000, -10):
        clock.wall_clock_set_by_ns += by_ms * 1_000_000
        clock.sleep(SHOW_EVERY_NS / 1e9)
        loop.tick()
        loop.tick()

    found = [event.value["by_s"] for event in loop.history().of(Action.HOST_CLOCK_SET)]
    assert found == [0.05, -5.0]
