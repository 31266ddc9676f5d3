"""The pace of a load: how many records are due at a moment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

MAX_CATCH_UP = 2
"""After a stall a load is sent at up to this multiple of its rate, instead of in one burst."""


def even_times(records: int, rate_per_s: int) -> Sequence[int]:
    """For each record, the nanoseconds from the first one until it is due at an even rate."""
    return [n * 1_000_000_000 // rate_per_s for n in range(records)]


class Pace(Protocol):
    """When the records of a load are due."""

    def begin(self, now_ns: int) -> None:
        """The first record is due now."""
        ...

    def due(self, now_ns: int) -> int:
        """The index before which all records should have been sent by now."""
        ...

    def most(self, last_ns: int, now_ns: int) -> int:
        """How many records may be sent now, where the last ones were sent at `last_ns`."""
        ...


class EvenPace:
    """A number of records per second, counted from an anchor that moves when the rate changes:
    records that were due at the old rate and not sent yet are not sent in a burst."""

    def __init__(self, rate_per_s: float, now_ns: int) -> None:
        self._anchor = (now_ns, 0)
        self._rate_per_s = rate_per_s

    def begin(self, now_ns: int) -> None:
        self._anchor = (now_ns, 0)

    def change(self, rate_per_s: float, index: int, now_ns: int) -> None:
        """Set another rate from record `index` on, now."""
        self._anchor = (now_ns, index)
        self._rate_per_s = rate_per_s

    def due(self, now_ns: int) -> int:
        began_ns, first = self._anchor
        return first + 1 + self._within(now_ns - began_ns)

    def most(self, last_ns: int, now_ns: int) -> int:
        return 1 + MAX_CATCH_UP * self._within(now_ns - last_ns)

    def _within(self, nanoseconds: int) -> int:
        return int(nanoseconds * self._rate_per_s // 1_000_000_000)


class OwnPace:
    """Records at given distances from the first one. After a stall, all that are due are sent."""

    def __init__(self, after_ns: Sequence[int]) -> None:
        self._after_ns = after_ns  # of each record after the first one, never falling
        self._began_ns = 0

    def begin(self, now_ns: int) -> None:
        self._began_ns = now_ns

    def due(self, now_ns: int) -> int:
        return bisect_right(self._after_ns, now_ns - self._began_ns)

    def most(self, last_ns: int, now_ns: int) -> int:
        return len(self._after_ns)
