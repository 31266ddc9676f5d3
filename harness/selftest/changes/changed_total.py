"""A total that is off by one."""

from __future__ import annotations

import json
from typing import ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.expected_outcome import Written


@changes.register
class ChangedTotal(Change):
    """One digit of its JSON is another one."""

    name: ClassVar[str] = "changed_total"
    expect: ClassVar[Written] = {"exactly_once": "changed"}

    def make(self, record: RecordedRunCopy) -> None:
        def off_by_one(rows: list[EventRecord]) -> list[EventRecord]:
            record = json.loads(rows[5]["value"])
            value = json.dumps({**record, "total": record["total"] + 1})
            return [*rows[:5], {**rows[5], "value": value}, *rows[6:]]

        record.rows("totals", off_by_one)
