"""A load that did not come to its end."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class LoadBroke(Change):
    """The run says that it was not finished."""

    name: ClassVar[str] = "load_broke"
    expect: ClassVar[Written] = {"execution": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        record.recorded_after(
            Action.FAULT_HEALED, Action.WORKLOAD_NOT_FINISHED, reason="the broker was gone"
        )
