"""A transaction that was decided and never ended."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written

HOUR_MS = 3_600_000


@changes.register
class NeverEndedTransaction(Change):
    """Its partitions do not know that it is to be committed, an hour after it began."""

    name: ClassVar[str] = "never_ended_transaction"
    expect: ClassVar[Written] = {"transactions": "hanging transaction"}

    def make(self, record: RecordedRunCopy) -> None:
        def undone(recorded: EventRecord) -> EventRecord:
            first, *others = recorded["transactions"]
            begun_ms = recorded["asked_ms"] - first["timeout_ms"] - HOUR_MS
            left = {**first, "state": "PrepareCommit", "started_ms": begun_ms}
            return {**recorded, "transactions": [left, *others]}

        record.changed(Action.TRANSACTIONS_SEEN, undone)
