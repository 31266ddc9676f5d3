"""A second fault that the job did not come back from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from streamquake.harness.selftest.change import Change, EventRecord, RecordedRunCopy, changes
from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written

SECOND_NS = 10**9
NODE = "flink/taskmanager-2"


@changes.register
class SecondFaultUnrecovered(Change):
    """When the job was back from the first kill another worker is killed; it fails, and is not
    reported as running again."""

    name: ClassVar[str] = "second_fault_unrecovered"
    expect: ClassVar[Written] = {
        "failover_scope": "undecided",
        "recovery": "undecided",
        "restore": "undecided",
        "throughput": "undecided",
    }

    def make(self, record: RecordedRunCopy) -> None:
        def again(plan: EventRecord) -> EventRecord:
            (first,) = plan["faults"]
            return {**plan, "faults": [first, {**first, "when": {"after_s": 10}}]}

        record.plan(again)
        recorded = False

        def killed(event: EventRecord) -> Iterable[EventRecord]:
            nonlocal recorded
            yield event
            if event["action"] == Action.TRANSACTIONS_SEEN and not recorded:
                recorded = True
                yield from _second(event)

        record.events(killed)


def _second(event: EventRecord) -> Iterable[EventRecord]:
    """A kill for three seconds from a moment on, and what the engine says of it."""
    called_ns = event["at_ns"]
    effect_ns, healed_ns = called_ns + SECOND_NS // 10, called_ns + 4 * SECOND_NS

    def at(at_ns: int, action: Action, **value: Any) -> EventRecord:
        return {**event, "at_ns": at_ns, "action": str(action), "value": value}

    of = {"step": 1, "fault": "kill", "target": "one of flink/taskmanager", "nodes": [NODE]}
    ended = {NODE: {"status": "exited", "exit_code": 137}}
    yield at(called_ns, Action.FAULT_CALLED, **of, params={})
    yield at(
        effect_ns,
        Action.FAULT_IN_EFFECT,
        **of,
        called_ns=called_ns,
        seen_ns=effect_ns,
        evidence=ended,
    )
    yield at(effect_ns + SECOND_NS, Action.JOB_FAILING, cause="its worker was lost")
    yield at(effect_ns + SECOND_NS, Action.JOB_RESTARTING, restart=2)
    yield at(healed_ns - SECOND_NS // 2, Action.HEAL_CALLED, **of)
    yield at(
        healed_ns,
        Action.FAULT_HEALED,
        **of,
        called_ns=healed_ns - SECOND_NS // 2,
        seen_ns=healed_ns,
        evidence={NODE: {"status": "running"}},
    )
