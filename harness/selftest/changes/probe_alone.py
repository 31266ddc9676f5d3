"""A fault that disturbed nothing of the system."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class ProbeAlone(Change):
    """By each look only the harness's own probe suffered."""

    name: ClassVar[str] = "probe_alone"
    expect: ClassVar[Written] = {"effect": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        evidence = {"flink/taskmanager-3": {DISTURBED: PROBE_ALONE}}
        for action in (Action.FAULT_IN_EFFECT, Action.FAULT_STILL_IN_EFFECT):
            record.changed(action, lambda recorded: {**recorded, "evidence": evidence})
