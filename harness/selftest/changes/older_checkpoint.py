"""A job that was set back to an older checkpoint."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class OlderCheckpoint(Change):
    """The one before the newest was restored."""

    name: ClassVar[str] = "older_checkpoint"
    expect: ClassVar[Written] = {"restore": "older checkpoint restored"}

    def make(self, record: RecordedRunCopy) -> None:
        record.changed(
            Action.JOB_RESTORED,
            lambda recorded: {**recorded, "checkpoint": recorded["checkpoint"] - 1},
        )
