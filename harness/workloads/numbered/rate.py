"""The rate of a count that grows, as samples worth drawing."""

from __future__ import annotations

LEAST_NS = 150_000_000
"""Over a shorter time a few records more or less would be a spike in a chart, or a hole."""


class RateSampler:
    """Samples of how fast a count grows, each over the time since the one before."""

    def __init__(self, now_ns: int) -> None:
        self._since = (now_ns, 0)

    def sample(self, now_ns: int, count: int) -> float | None:
        """A second's growth; None when the last sample is too near for another to mean anything."""
        before_ns, before = self._since
        if (elapsed_ns := now_ns - before_ns) < LEAST_NS:
            return None
        self._since = (now_ns, count)
        return (count - before) / (elapsed_ns / 1e9)
