"""A record that the output should have."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.expected_outcome import Written


@changes.register
class LostRecord(Change):
    """It is taken out of the topic."""

    name: ClassVar[str] = "lost_record"
    expect: ClassVar[Written] = {"exactly_once": "lost"}

    def make(self, record: RecordedRunCopy) -> None:
        record.rows("totals", lambda rows: rows[:5] + rows[6:])
