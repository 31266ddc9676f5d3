"""A checkpoint that is called completed, and that nobody acknowledged."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written

OF_ONE = (
    Action.CHECKPOINT_ACKNOWLEDGED,
    Action.CHECKPOINT_ALL_ACKNOWLEDGED,
    Action.CHECKPOINT_COMPLETED,
)
NUMBER = 2


@changes.register
class UnacknowledgedCheckpoint(Change):
    """Neither its progress nor the part of any subtask is there."""

    name: ClassVar[str] = "unacknowledged"
    expect: ClassVar[Written] = {"checkpoints": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        def unanswered(event: EventRecord) -> list[EventRecord]:
            value = event["value"]
            if event["action"] not in OF_ONE or value["checkpoint"] != NUMBER:
                return [event]
            if event["action"] != Action.CHECKPOINT_COMPLETED:
                return []
            return [{**event, "value": {**value, "subtasks": []}}]

        record.events(unanswered)
