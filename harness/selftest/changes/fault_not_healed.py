"""A fault whose removal was not verified."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class FaultNotHealed(Change):
    """Its heal failed."""

    name: ClassVar[str] = "fault_not_healed"
    expect: ClassVar[Written] = {"effect": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        record.recorded_after(Action.HEAL_CALLED, Action.FAULT_NOT_HEALED, reason="no process came")
        record.without(Action.FAULT_HEALED)
