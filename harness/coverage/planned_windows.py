"""Whether a phase is the window for which a fault was planned.

The run compared the engine's clock with its own directly, more exactly than the record can, and the
evidence of the record does not contradict it.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.harness.coverage.injections import Injection
from streamquake.harness.coverage.phase_window import PhaseWindow
from streamquake.harness.verdict.evidence.trigger_evidence import trigger_event
from streamquake.reports.coverage.cell import Phase
from streamquake.reports.record.checkpoint_events import checkpoint_number
from streamquake.reports.record.event import Action
from streamquake.reports.record.fault_events import FaultCalled
from streamquake.reports.record.history import History

WINDOWS: Mapping[tuple[str, str], Phase] = {
    (Action.CHECKPOINT_TRIGGERED, Action.CHECKPOINT_ACKNOWLEDGED): Phase.BARRIER,
    (Action.CHECKPOINT_TRIGGERED, Action.CHECKPOINT_ALL_ACKNOWLEDGED): Phase.BARRIER,
    (Action.CHECKPOINT_ACKNOWLEDGED, Action.CHECKPOINT_ALL_ACKNOWLEDGED): Phase.BARRIER,
    (Action.CHECKPOINT_ALL_ACKNOWLEDGED, Action.CHECKPOINT_COMPLETED): Phase.ACKNOWLEDGED,
    (Action.CHECKPOINT_COMPLETED, Action.SINK_COMMITTED): Phase.COMPLETED,
    (Action.OFFSET_WRITTEN, Action.BATCH_RUNNING): Phase.PLANNED,
    (Action.BATCH_RUNNING, Action.SINK_WRITTEN): Phase.RUNNING,
    (Action.SINK_WRITTEN, Action.COMMIT_WRITTEN): Phase.SINK_WRITTEN,
    (Action.JOB_FAILING, Action.JOB_RESTORED): Phase.RESTART,
    (Action.JOB_RESTARTING, Action.JOB_RESTORED): Phase.RESTART,
    (Action.JOB_RESTORED, Action.JOB_RUNNING): Phase.RESTORE,
}
"""The two events of a planned window -> the phase in which it lies."""


def is_planned(injection: Injection, window: PhaseWindow, history: History) -> bool:
    """Whether a phase is the planned window of the injection, of the same checkpoint, and the fault
    met it."""
    between = injection.step.when.between
    if not injection.met_window or between is None or WINDOWS.get(between) is not window.phase:
        return False
    called = history.of(FaultCalled)
    own = [each for each in called if each.step == injection.number]
    opened = trigger_event(injection.step.when, own[-1], history) if own else None
    if opened is None:
        return False
    return window.checkpoint is None or checkpoint_number(opened) == window.checkpoint
