"""A run whose end was not awaited."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class NotDrained(Change):
    """Nothing says that all was committed."""

    name: ClassVar[str] = "not_drained"
    expect: ClassVar[Written] = {
        "execution": "undecided",
        "exactly_once": "undecided",
        "transactions": "undecided",
    }

    def make(self, record: RecordedRunCopy) -> None:
        record.without(Action.DRAINED)
