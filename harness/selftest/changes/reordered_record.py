"""A record that came before the one before it."""

from __future__ import annotations

import json
from typing import ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.expected_outcome import Written


@changes.register
class ReorderedRecord(Change):
    """It and the former one of its key have each other's place."""

    name: ClassVar[str] = "reordered_record"
    expect: ClassVar[Written] = {"exactly_once": "reordered"}

    def make(self, record: RecordedRunCopy) -> None:
        def exchanged(rows: list[EventRecord]) -> list[EventRecord]:
            key = json.loads(rows[0]["value"])["key"]
            first, second = [
                n for n, row in enumerate(rows) if json.loads(row["value"])["key"] == key
            ][:2]
            values = {first: rows[second]["value"], second: rows[first]["value"]}
            return [{**row, "value": values.get(n, row["value"])} for n, row in enumerate(rows)]

        record.rows("totals", exchanged)
