"""A checkpoint that is falsely called unaligned."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class CalledUnaligned(Change):
    """The type of each completed one says so."""

    name: ClassVar[str] = "called_unaligned"
    expect: ClassVar[Written] = {"checkpoints": "unaligned"}

    def make(self, record: RecordedRunCopy) -> None:
        record.changed(
            Action.CHECKPOINT_COMPLETED,
            lambda recorded: {**recorded, "type": f"UNALIGNED_{recorded['type']}"},
        )
