"""A transaction that was left open."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written

MINUTE_MS = 60_000


@changes.register
class HangingTransaction(Change):
    """It is ongoing a minute after the coordinator should have aborted it."""

    name: ClassVar[str] = "hanging_transaction"
    expect: ClassVar[Written] = {"transactions": "hanging transaction"}

    def make(self, record: RecordedRunCopy) -> None:
        def left_open(recorded: EventRecord) -> EventRecord:
            first, *others = sorted(
                recorded["transactions"], key=lambda each: each["started_ms"] is None
            )
            begun_ms = recorded["asked_ms"] - first["timeout_ms"] - MINUTE_MS
            left = {**first, "state": "Ongoing", "started_ms": begun_ms}
            return {**recorded, "transactions": [left, *others]}

        record.changed(Action.TRANSACTIONS_SEEN, left_open)
