"""The events of a second kill, to add to a recorded run with one kill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamquake.faults.mechanisms.processes import KILLED
from streamquake.harness.selftest.recorded_run_copy import EventRecord
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import usual_kind

SECOND_NS = 10**9
NODE = "flink/taskmanager-2"


def second_kill(event: EventRecord) -> Iterator[EventRecord]:
    """The events of a kill at the moment of `event`: healed after four seconds, and the job fails
    and restarts."""
    called_ns = event["at_ns"]
    effect_ns, healed_ns = called_ns + SECOND_NS // 10, called_ns + 4 * SECOND_NS

    def at(at_ns: int, action: Action, **value: Any) -> EventRecord:
        kind = str(usual_kind(action))
        return {**event, "at_ns": at_ns, "action": str(action), "kind": kind, "value": value}

    fault = {"step": 1, "fault": "kill", "target": "one of flink/taskmanager", "nodes": [NODE]}
    before = {"status": "running", "pid": 7, "started_at": "2026-11-24T04:57:56Z"}
    ended_by = {"exit_code": KILLED, "oom_killed": False, "signal": "KILL"}
    killed = {"status": "exited", "pid": 0, **ended_by}
    ended = {NODE: {**before, **killed, "before": before}}
    # By the clock of the recorded run, between the call of the heal and its observation.
    started_at = "2026-11-24T04:59:01.7Z"
    again = {"status": "running", "pid": 8, "started_at": started_at, "before": before}
    yield at(called_ns, Action.FAULT_CALLED, **fault, params={})
    yield at(effect_ns, Action.CONTAINER_DIED, node=NODE, exit_code=KILLED)
    yield at(
        effect_ns,
        Action.FAULT_IN_EFFECT,
        **fault,
        called_ns=called_ns,
        seen_ns=effect_ns,
        evidence=ended,
    )
    yield at(effect_ns + SECOND_NS, Action.JOB_FAILING, cause="its worker was lost")
    yield at(effect_ns + SECOND_NS, Action.JOB_RESTARTING, restart=2)
    yield at(healed_ns - SECOND_NS // 2, Action.HEAL_CALLED, **fault)
    yield at(healed_ns, Action.CONTAINER_STARTED, node=NODE, exit_code=None)
    yield at(
        healed_ns,
        Action.FAULT_HEALED,
        **fault,
        called_ns=healed_ns - SECOND_NS // 2,
        seen_ns=healed_ns,
        evidence={NODE: again},
    )
