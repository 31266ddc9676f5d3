"""A load of which a note is missing."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written

FIRST = 1000
"""The first note that begins behind this record is left out."""


@changes.register
class UnrecordedSends(Change):
    """What it told of stands in the output, and nothing says that it was sent."""

    name: ClassVar[str] = "sends_untold"
    expect: ClassVar[Written] = {"execution": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        left_out = False

        def others(event: EventRecord) -> list[EventRecord]:
            nonlocal left_out
            sent = event["action"] == Action.SENT and event["value"]["first"] > FIRST
            if sent and not left_out:
                left_out = True
                return []
            return [event]

        record.events(others)
