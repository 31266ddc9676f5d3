"""A job that never ran again."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class NeverRanAgain(Change):
    """After the fault it is not reported as running."""

    name: ClassVar[str] = "never_ran_again"
    expect: ClassVar[Written] = {
        "recovery": "undecided",
        "failover_scope": "undecided",
        "throughput": "undecided",
    }

    def make(self, record: RecordedRunCopy) -> None:
        record.without(Action.JOB_RUNNING, after=Action.FAULT_IN_EFFECT)
