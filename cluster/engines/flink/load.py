"""How a job's tasks spend their time, from the counters that Flink keeps of it.

Flink's own rates (`backPressuredTimeMsPerSecond` and its like) are means over a minute: half a
minute of back-pressure never shows fully, and still shows half a minute after it ended. The
counters behind them are updated every five seconds (`TimerGauge`, a `View`), so that a share is at
most that old.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streamquake.cluster.engines.engine import RecordSample

COUNTERS = {
    "accumulated-busy-time": "busy_ms_per_s",
    "accumulated-backpressured-time": "back_pressured_ms_per_s",
    "accumulated-idle-time": "idle_ms_per_s",
}
Share = Mapping[str, float]
"""Series -> milliseconds of each second."""


@dataclass
class _Task:
    attempt: int
    counted: tuple[float, ...]
    share: Share | None = None


class TaskLoad:
    """Remembers the counters of every subtask of one job."""

    def __init__(self, measure: RecordSample) -> None:
        self._measure = measure
        self._tasks: dict[tuple[str, int], _Task] = {}

    def poll(self, vertices: Iterable[Mapping[str, Any]]) -> None:
        """Take one sample for each vertex, of the answers of `GET /jobs/:job/vertices/:vertex`: the
        mean of its subtasks' last known shares, and the highest, with `_max` behind the name."""
        for vertex in vertices:
            shares = [self._share(vertex["id"], task) for task in vertex["subtasks"]]
            known = [share for share in shares if share is not None]
            for series in COUNTERS.values() if known else ():
                values = [share[series] for share in known]
                self._measure(series, vertex["name"], sum(values) / len(values))
                self._measure(f"{series}_max", vertex["name"], max(values))

    def _share(self, vertex: str, task: Mapping[str, Any]) -> Share | None:
        """A subtask's time between the last two states of its counters, if there were two."""
        counted = tuple(float(task["metrics"].get(name, math.nan)) for name in COUNTERS)
        place, attempt = (vertex, task["subtask"]), task["attempt"]
        seen = self._tasks.get(place)
        if not all(map(math.isfinite, counted)) or task["status"] != "RUNNING":
            return None  # legacy sources do not know how busy they are
        if seen is None or seen.attempt != attempt or sum(counted) < sum(seen.counted):
            self._tasks[place] = _Task(attempt, counted)
            return None
        # A counter of time in progress may be corrected by some milliseconds.
        spent = [max(0.0, now - then) for now, then in zip(counted, seen.counted, strict=True)]
        if sum(spent) > 0:
            share = dict(
                zip(COUNTERS.values(), (1000 * s / sum(spent) for s in spent), strict=True)
            )
            self._tasks[place] = seen = _Task(attempt, counted, share)
        return seen.share
