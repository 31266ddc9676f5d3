"""The run as it was recorded."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.expected_outcome import Written


@changes.register
class Unchanged(Change):
    """Nothing is changed, and all is held."""

    name: ClassVar[str] = "unchanged"
    clean: ClassVar[bool] = True
    expect: ClassVar[Written] = "held"

    def make(self, record: RecordedRunCopy) -> None:
        """The record is left alone."""
