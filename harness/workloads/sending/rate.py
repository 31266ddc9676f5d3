"""The rate of a growing count, as samples for a chart."""

from __future__ import annotations

LEAST_NS = 150_000_000
"""Over a shorter interval, a few records more or less would be a spike or a gap in a chart."""


class RateSampler:
    """Samples of the growth of a count, each over the time since the previous sample."""

    def __init__(self, now_ns: int) -> None:
        self._since = (now_ns, 0)

    def sample(self, now_ns: int, count: int) -> float | None:
        """Growth per second; None when the last sample is too recent for a meaningful one."""
        before_ns, before = self._since
        if (elapsed_ns := now_ns - before_ns) < LEAST_NS:
            return None
        self._since = (now_ns, count)
        return (count - before) / (elapsed_ns / 1e9)
