"""Turns: from which record on the load is sent in another way, by whom, and how.

Each stands in the history as `workload steered`, before any record that it concerns, so that the
records can be made again exactly: they are a pure function of (seed, turns, index).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from streamquake.faults.catalogue.explosion import Explosion
from streamquake.faults.catalogue.large_records import LargeRecords
from streamquake.faults.catalogue.late_events import LateEvents
from streamquake.faults.catalogue.poison import Poison
from streamquake.faults.catalogue.skew import SkewKeys
from streamquake.faults.catalogue.surge import Surge
from streamquake.faults.mechanisms.workload_change import DataFault
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History

KNOWN: Mapping[str, type[DataFault]] = {
    kind.name: kind for kind in (SkewKeys, Surge, LargeRecords, LateEvents, Poison, Explosion)
}
"""The disturbances that this load can be steered into."""


class Turn(NamedTuple):
    """From record `at_record` on: a disturbance, or with no parameters its end."""

    at_record: int
    disturbance: str
    parameters: Mapping[str, Any] | None

    def made(self) -> DataFault:
        """The disturbance. Raises ValueError when it is unknown or its parameters are wrong."""
        if self.disturbance not in KNOWN:
            known = ", ".join(KNOWN)
            raise ValueError(
                f'numbered records cannot be steered into "{self.disturbance}"; known: {known}'
            )
        return KNOWN[self.disturbance](**(self.parameters or {}))


def turns_of(history: History) -> tuple[Turn, ...]:
    """All turns of a run, in order."""
    return tuple(Turn(**event.value) for event in history.of(Action.WORKLOAD_STEERED))


def in_force(turns: Iterable[Turn], index: int) -> Mapping[str, Turn]:
    """The disturbances that concern record `index`, by name."""
    found: dict[str, Turn] = {}
    for turn in turns:
        if turn.at_record <= index:
            found.pop(turn.disturbance, None)
            if turn.parameters is not None:
                found[turn.disturbance] = turn
    return found
