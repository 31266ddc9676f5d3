"""Workload changes: the record from which on the load is sent in another way, and the disturbance
that causes it.

The history contains each as `workload steered`, before any record that it affects, so that the
records can be generated again exactly: they are a pure function of (seed, workload changes, index).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.workload_change import WorkloadChange
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import WorkloadSteered


class ScheduledChange(NamedTuple):
    """From record `at_record` on: a disturbance, or with no parameters its end."""

    at_record: int
    disturbance: str
    parameters: Mapping[str, Any] | None

    def build_fault(self) -> DataFault:
        """The disturbance. Raises ValueError when it is unknown or its parameters are wrong."""
        kind = faults.get(self.disturbance)
        if kind is None or not issubclass(kind, DataFault):
            known = (name for name, each in faults.items() if issubclass(each, DataFault))
            raise ValueError(
                f'numbered records cannot be steered into "{self.disturbance}"; known: '
                f"{', '.join(known)}"
            )
        return kind(**(self.parameters or {}))

    @property
    def change(self) -> WorkloadChange:
        """What it changes in the load. Raises ValueError, as `build_fault`."""
        return self.build_fault().change


def scheduled_changes_of(history: History) -> tuple[ScheduledChange, ...]:
    """All workload changes of a run, in order."""
    return tuple(
        ScheduledChange(event.at_record, event.disturbance, event.parameters)
        for event in history.of(WorkloadSteered)
    )


def in_force(
    scheduled_changes: Iterable[ScheduledChange], index: int
) -> Mapping[str, ScheduledChange]:
    """The disturbances that affect record `index`, by name."""
    found: dict[str, ScheduledChange] = {}
    for change in scheduled_changes:
        if change.at_record <= index:
            found.pop(change.disturbance, None)
            if change.parameters is not None:
                found[change.disturbance] = change
    return found
