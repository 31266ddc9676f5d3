"""How faults reach the load of a run while it can be disturbed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class SteerableLoad(Protocol):
    """A load whose records can be disturbed while it runs; the expected output stays known."""

    def steer(self, disturbance: str, parameters: Mapping[str, Any]) -> int:
        """Change the load from now on; returns the index of the first record that it affects.

        Raises ValueError for a disturbance that this load does not know.
        """
        ...

    def settle(self, disturbance: str) -> int:
        """End the change; returns the index of the first ordinary record. May run twice."""
        ...

    def sent_under(self, disturbance: str) -> Mapping[str, Any]:
        """The figures of the records acknowledged during this change: `active`, `records`, and
        figures of the disturbance itself (such as the share of the hot key)."""
        ...
