"""The pace of the load: how many records are due at a rate that may change."""

from __future__ import annotations


class Pace:
    """A number of records per second, counted from an anchor that moves when the rate changes:
    records that were due at the old rate and not sent yet are not sent in a burst."""

    def __init__(self, rate_per_s: float, now_ns: int) -> None:
        self._anchor = (now_ns, 0)
        self._rate_per_s = rate_per_s

    def change(self, rate_per_s: float, index: int, now_ns: int) -> None:
        """Set another rate from record `index` on, now."""
        self._anchor = (now_ns, index)
        self._rate_per_s = rate_per_s

    def due(self, now_ns: int) -> int:
        """The index before which all records should have been sent by now."""
        began_ns, first = self._anchor
        return first + 1 + self.within(now_ns - began_ns)

    def within(self, nanoseconds: int) -> int:
        """How many records fall into a time interval."""
        return int(nanoseconds * self._rate_per_s // 1_000_000_000)
