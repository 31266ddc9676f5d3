"""Whether the engine took the savepoint that a fault says it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, EngineClock
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History

FAULT = "savepoint"


def unreported_savepoints(attempt: StepAttempt, history: History) -> Iterator[str]:
    """A message where the engine reported no completed savepoint of the number in the evidence, or
    one that was triggered before the fault was called."""
    began = attempt[FaultInEffect]
    if began.fault != FAULT:
        return
    clock = EngineClock(history)
    completed = [
        event for event in history.of(CheckpointCompleted) if "SAVEPOINT" in (event.type or "")
    ]
    for observed in (began.evidence or {}).values():
        if not isinstance(observed, Mapping):
            continue
        number = observed.get("number")
        taken = next((event for event in completed if event.checkpoint == number), None)
        if taken is None:
            yield f"the engine did not report that savepoint {number} completed"
            continue
        early_s = (began.start_ns - clock.stamped_ns(taken, taken.trigger_ms)) / 1e9
        if early_s > STAMPS_S:
            yield f"savepoint {number} was triggered {early_s:.1f} s before the injection's call"
