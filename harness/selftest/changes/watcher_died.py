"""A part of the harness that died."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class WatcherDied(Change):
    """The part that polls the checkpoints failed."""

    name: ClassVar[str] = "watcher_died"
    expect: ClassVar[Written] = {"execution": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        record.recorded_after(
            Action.FAULT_IN_EFFECT,
            Action.HARNESS_ERROR,
            part="checkpoints",
            error_text="it is gone",
        )
