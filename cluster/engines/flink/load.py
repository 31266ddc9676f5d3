"""The busy, back-pressured and idle time of a job's tasks, from Flink's counters.

Flink's own rates (`backPressuredTimeMsPerSecond` and its like) are means over a minute: half a
minute of back-pressure never appears at its full height, and still appears half a minute after its
end. The counters are updated every five seconds (`TimerGauge`, a `View`), so a share is at most
that old.
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
        """Take one sample for each vertex, from the answers of `GET /jobs/:job/vertices/:vertex`:
        the mean of its subtasks' last known shares, and the highest, as a series with the suffix
        `_max`."""
        for vertex in vertices:
            shares = [self._share(vertex["id"], task) for task in vertex["subtasks"]]
            known = [share for share in shares if share is not None]
            for series in COUNTERS.values() if known else ():
                values = [share[series] for share in known]
                self._measure(series, vertex["name"], sum(values) / len(values))
                self._measure(f"{series}_max", vertex["name"], max(values))

    def _share(self, vertex: str, task: Mapping[str, Any]) -> Share | None:
        """A subtask's shares of the time between the last two updates of its counters, if any."""
        counted = tuple(float(task["metrics"].get(name, math.nan)) for name in COUNTERS)
        place, attempt = (vertex, task["subtask"]), task["attempt"]
        last = self._tasks.get(place)
        if not all(map(math.isfinite, counted)) or task["status"] != "RUNNING":
            return None  # legacy sources do not report their busy time
        if last is None or last.attempt != attempt or sum(counted) < sum(last.counted):
            self._tasks[place] = _Task(attempt, counted)
            return None
        # A counter of time in progress may be corrected by some milliseconds.
        spent = [max(0.0, now - then) for now, then in zip(counted, last.counted, strict=True)]
        if sum(spent) > 0:
            share = dict(
                zip(COUNTERS.values(), (1000 * s / sum(spent) for s in spent), strict=True)
            )
            self._tasks[place] = last = _Task(attempt, counted, share)
        return last.share
