"""How faults reach the load of a run while it can be disturbed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class SteerableLoad(Protocol):
    """A load whose records can be disturbed while it runs, with a result that stays known."""

    def steer(self, disturbance: str, parameters: Mapping[str, Any]) -> int:
        """From now on send in another way; returns the index of the first record it concerns.

        Raises ValueError for a disturbance that this load does not know.
        """
        ...

    def settle(self, disturbance: str) -> int:
        """Send as before again; returns the index of the first ordinary record. May run twice."""
        ...

    def sent_under(self, disturbance: str) -> Mapping[str, Any]:
        """What was acknowledged while it was steered so: `active`, `records`, and what shows the
        disturbance itself (such as the share of the hot key)."""
        ...
