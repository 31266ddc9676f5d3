"""A node that ended by itself and stayed down."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class NodeStayedDown(Change):
    """No fault was to end it, and nobody started it again."""

    name: ClassVar[str] = "node_stayed_down"
    expect: ClassVar[Written] = {"execution": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        record.recorded_after(
            Action.FAULT_HEALED, Action.CONTAINER_DIED, node="hdfs/datanode-1", exit_code=1
        )
