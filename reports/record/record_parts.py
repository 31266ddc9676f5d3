"""Parts that are derived from a record. Damage affects only the parts that read the damaged
event."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from streamquake.topologies.errors import reason_of

T = TypeVar("T")


class RecordParts:
    """Derives parts from a record. `problems` has a message for each part that cannot be
    derived."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def derive(self, part: str, derive: Callable[[], T], *, otherwise: T) -> T:
        """The part, or `otherwise` where `derive` raises."""
        try:
            return derive()
        except Exception as error:  # noqa: BLE001 - a damaged record can raise anything
            self.problems.append(f"{part} cannot be read: {reason_of(error)}")
            return otherwise
