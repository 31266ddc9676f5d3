"""A task that did not restart with the others."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written

SUBTASK = 1
ENDED = ("CANCELING", "CANCELED", "FAILED")


@changes.register
class TaskWentOn(Change):
    """Neither its end nor its next attempt is there, nor how long it runs."""

    name: ClassVar[str] = "task_went_on"
    expect: ClassVar[Written] = {"failover_scope": "predicted"}

    def make(self, record: RecordedRunCopy) -> None:
        def others(event: EventRecord) -> list[EventRecord]:
            value = event["value"]
            meant = event["action"] == Action.TASK_CHANGED and value["subtask"] == SUBTASK
            return [] if meant and (value["attempt"] > 0 or value["state"] in ENDED) else [event]

        record.events(others)
        record.samples(lambda sample: not sample["where"].endswith(f"/{SUBTASK}"))
