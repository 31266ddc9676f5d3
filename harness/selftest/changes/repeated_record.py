"""A record that came twice."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.expected_outcome import Written


@changes.register
class RepeatedRecord(Change):
    """It stands a second time at the end of its partition."""

    name: ClassVar[str] = "repeated_record"
    expect: ClassVar[Written] = {"exactly_once": "duplicated"}

    def make(self, record: RecordedRunCopy) -> None:
        def once_more(rows: list[EventRecord]) -> list[EventRecord]:
            last = max(rows, key=lambda row: int(row["offset"]))
            again = {**last, "value": rows[5]["value"], "offset": last["offset"] + 1}
            return [*rows, again]

        record.rows("totals", once_more)
