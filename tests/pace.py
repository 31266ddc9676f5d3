"""How much longer than on an idle machine a test may wait, measured once at the first wait.

A limit ends a wait that would never end. On a busy machine everything takes longer, so the limits
of container tests grow with its load; the messages of waits that run out stay the same.
"""

from __future__ import annotations

import os
import time
from functools import cache

from streamquake.cluster.runtime import waiting
from streamquake.cluster.runtime.clock import Clock

WORK_S = 0.2
"""The CPU time of the measurement, in seconds."""
MOST = 10.0
"""The largest factor: with longer limits, a test that fails would take hours."""


@cache
def pace() -> float:
    """The factor for limits: 1 on an idle machine, more where this process gets only a part of a
    core, or where more processes are ready than there are cores."""
    began, used = time.perf_counter(), time.thread_time()
    while (cpu_s := time.thread_time() - used) < WORK_S:
        pass
    waited = (time.perf_counter() - began) / cpu_s
    queued = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(max(1.0, waited, queued), MOST)


def at_pace(limit_s: float) -> float:
    """A limit in seconds on an idle machine, for this machine."""
    return limit_s * pace()


def wait_until(
    pending: waiting.Pending, *, what: str, limit_s: float, clock: Clock, every_s: float = 0.1
) -> None:
    """As in `waiting.py`, with the limit for this machine. Raises NotReadyInTime."""
    waiting.wait_until(pending, what=what, limit_s=at_pace(limit_s), clock=clock, every_s=every_s)
