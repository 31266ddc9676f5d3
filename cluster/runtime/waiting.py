"""Wait for a state, not for a time; the reason for the wait is always known."""

from __future__ import annotations

from collections.abc import Callable

from streamquake.cluster.runtime.clock import Clock
from streamquake.topologies.errors import ErrorKind, StreamquakeError

Pending = Callable[[], str | None]
"""The reason why a state is not reached yet, or None when it is (TigerBeetle's `pending`)."""


class NotReadyInTime(StreamquakeError):
    """A state was not reached within its limit; `reason` is the last observation."""

    kind = ErrorKind.CLUSTER_FAILED

    def __init__(self, what: str, limit_s: float, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{what}: not within {limit_s:g} s: {reason}")


def wait_until(
    pending: Pending, *, what: str, limit_s: float, clock: Clock, every_s: float = 0.1
) -> None:
    """Poll until `pending` returns None. Raises NotReadyInTime with the last reason.

    An exception from `pending` ends the wait at once, such as that of a dead container.
    """
    deadline_ns = clock.now_ns() + int(limit_s * 1e9)
    while (reason := pending()) is not None:
        if clock.now_ns() >= deadline_ns:
            raise NotReadyInTime(what, limit_s, reason)
        clock.sleep(every_s)
