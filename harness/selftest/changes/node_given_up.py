"""A node that kept ending by itself."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class NodeGivenUp(Change):
    """It is not started again."""

    name: ClassVar[str] = "node_given_up"
    expect: ClassVar[Written] = {"execution": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        record.recorded_after(
            Action.FAULT_HEALED, Action.NODE_GIVEN_UP, node="kafka/broker-1", exit_code=1, times=5
        )
