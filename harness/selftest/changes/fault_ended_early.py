"""A fault that ended before it was healed."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written

SECOND_NS = 10**9
GONE_NS = 54 * SECOND_NS
"""Between effect and heal, as they were recorded."""


@changes.register
class FaultEndedEarly(Change):
    """The look before the heal found its effect gone."""

    name: ClassVar[str] = "fault_ended_early"
    expect: ClassVar[Written] = {"effect": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        record.without(Action.FAULT_STILL_IN_EFFECT)
        record.recorded_after(
            Action.FAULT_IN_EFFECT,
            Action.FAULT_ENDED_EARLY,
            last_seen_ns=GONE_NS - SECOND_NS,
            seen_ns=GONE_NS,
            evidence={},
            reason="the process runs again",
        )
