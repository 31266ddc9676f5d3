"""Workload changes: a disturbance that begins or ends, and the first record that it affects.

The history contains each as `workload steered`, before any record that it affects. The records are
a pure function of (seed, workload changes, index), so they can be generated again exactly.
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
    """A disturbance that begins at record `at_record`, or without parameters its end."""

    at_record: int
    disturbance: str
    parameters: Mapping[str, Any] | None

    def build_fault(self) -> DataFault:
        """The fault of the disturbance. Raises ValueError if it is unknown or its parameters are
        wrong."""
        kind = faults.get(self.disturbance)
        if kind is None or not issubclass(kind, DataFault):
            known = (name for name, fault in faults.items() if issubclass(fault, DataFault))
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


def active_changes(
    scheduled_changes: Iterable[ScheduledChange], index: int
) -> Mapping[str, ScheduledChange]:
    """The disturbances that affect record `index`, by name."""
    active: dict[str, ScheduledChange] = {}
    for change in scheduled_changes:
        if change.at_record <= index:
            active.pop(change.disturbance, None)
            if change.parameters is not None:
                active[change.disturbance] = change
    return active
