"""A fault that is called in effect without evidence."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written


@changes.register
class EffectUnseen(Change):
    """What was seen is of another node than the one it was injected on."""

    name: ClassVar[str] = "effect_unseen"
    expect: ClassVar[Written] = {"effect": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        elsewhere = {"flink/taskmanager-1": {"status": "exited", "exit_code": 137}}
        record.changed(Action.FAULT_IN_EFFECT, lambda recorded: {**recorded, "evidence": elsewhere})
