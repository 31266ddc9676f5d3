"""The pace of the load: how many records are due, at a rate that may change."""

from __future__ import annotations


class Pace:
    """So many records a second, counted from an anchor that moves when the rate changes: what was
    due at the old rate and not sent yet is not made up for in a burst."""

    def __init__(self, rate_per_s: float, now_ns: int) -> None:
        self._anchor = (now_ns, 0)
        self._rate_per_s = rate_per_s

    def change(self, rate_per_s: float, index: int, now_ns: int) -> None:
        """From record `index` on, now, another rate."""
        self._anchor = (now_ns, index)
        self._rate_per_s = rate_per_s

    def due(self, now_ns: int) -> int:
        """Before which index the records should have been sent by now."""
        began_ns, first = self._anchor
        return first + 1 + self.within(now_ns - began_ns)

    def within(self, nanoseconds: int) -> int:
        """How many records fall into a stretch of time."""
        return int(nanoseconds * self._rate_per_s // 1_000_000_000)
