"""When acknowledgements arrived, whatever the order of their records.

The history lists records in order of their index, so an acknowledged record stands behind an
earlier one whose send is not settled. Without these times, a load whose records for one partition
wait for a broker would look silent, although the other partitions acknowledge theirs.
"""

from __future__ import annotations

from typing import Any

LEAST_PAUSE_NS = 500_000_000
"""Shorter pauses are not recorded: half a second is about two of the load's events."""


class AcknowledgementTimes:
    """The last acknowledgement and the pauses between two of them. Owned by one thread."""

    def __init__(self) -> None:
        self._last_ns: int | None = None
        self._pauses_ns: list[list[int]] = []

    def acknowledged(self, now_ns: int) -> None:
        """Note that a record was acknowledged, in ns of the run's clock."""
        if self._last_ns is not None and now_ns - self._last_ns >= LEAST_PAUSE_NS:
            self._pauses_ns.append([self._last_ns, now_ns])
        self._last_ns = now_ns

    def take(self) -> dict[str, Any]:
        """Remove and return the fields of a `records sent` event of acknowledged records:
        `acknowledged_until_ns` and the `pauses_ns` since the event before."""
        pauses_ns, self._pauses_ns = self._pauses_ns, []
        return {"acknowledged_until_ns": self._last_ns, "pauses_ns": pauses_ns}
