"""A second document behind a record."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.expected_outcome import Written


@changes.register
class SecondDocument(Change):
    """The value of one record holds the next one too."""

    name: ClassVar[str] = "second_document"
    expect: ClassVar[Written] = {"exactly_once": ("lost", "phantom")}

    def make(self, record: RecordedRunCopy) -> None:
        def joined(rows: list[EventRecord]) -> list[EventRecord]:
            value = rows[5]["value"] + rows[6]["value"]
            return [*rows[:5], {**rows[5], "value": value}, *rows[7:]]

        record.rows("totals", joined)
