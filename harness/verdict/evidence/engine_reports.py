"""Whether the engine itself reported what a fault says it made it do: a savepoint, or the loss of
executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, EngineClock
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import ExecutorLost

SAVEPOINT, KILL_EXECUTOR = "savepoint", "kill_executor"


def unreported_by_engine(attempt: StepAttempt, history: History) -> Iterator[str]:
    """A message for each savepoint of the evidence, and each worker with killed executors, that the
    engine did not report, or that it stamped with a moment before the injection was called."""
    began = attempt[FaultInEffect]
    if began.fault == SAVEPOINT:
        for observed in (began.evidence or {}).values():
            if isinstance(observed, Mapping):
                yield from _savepoint(observed.get("number"), began, history)
    elif began.fault == KILL_EXECUTOR:
        for node in began.nodes or ():
            yield from _lost_executors(node, began, history)


def _savepoint(number: object, began: FaultInEffect, history: History) -> Iterator[str]:
    taken = [
        event
        for event in history.of(CheckpointCompleted)
        if "SAVEPOINT" in (event.type or "") and event.checkpoint == number
    ]
    if not taken:
        yield f"the engine did not report that savepoint {number} completed"
        return
    triggered_ns = EngineClock(history).stamped_ns(taken[0], taken[0].trigger_ms)
    early_s = (began.start_ns - triggered_ns) / 1e9
    if early_s > STAMPS_S:
        yield f"savepoint {number} was triggered {early_s:.1f} s before the injection's call"


def _lost_executors(node: str, began: FaultInEffect, history: History) -> Iterator[str]:
    clock = EngineClock(history)
    lost_ns = [
        clock.stamped_ns(event, event.lost_ms)
        for event in history.of(ExecutorLost)
        if event.node == node
    ]
    if all(moment_ns < began.start_ns - STAMPS_S * 1e9 for moment_ns in lost_ns):
        yield f"the engine did not report that {node} lost an executor since the injection's call"
