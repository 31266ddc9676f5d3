"""Whether the load itself was sent with a fault of the workload from its injection to its heal."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.evidence.contradicted_evidence import fault_of
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, first_heal_call
from streamquake.reports.record.fault_events import FaultCalled, FaultHealed, FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import WorkloadSteered


def contradicted_load(step: Step, attempt: StepAttempt, history: History) -> Iterator[str]:
    """A message where the workload did not begin to send with a fault of its own when it was
    called, ended before its heal was called, or has no record with it. A load that has finished
    records no end."""
    began, called, healed = (
        attempt.get(kind) for kind in (FaultInEffect, FaultCalled, FaultHealed)
    )
    fault = fault_of(step)
    if not isinstance(fault, DataFault) or began is None or called is None:
        return
    heal = first_heal_call(attempt[FaultInEffect], history)
    last = len(history) if healed is None else healed.index
    changes = [
        event
        for event in history.of(WorkloadSteered)
        if event.disturbance == fault.name and called.index < event.index <= last
    ]
    on, off = [[e for e in changes if (e.parameters is None) == ends] for ends in (False, True)]
    if len(on) != 1 or on[0].index > began.index:
        yield "the workload did not record that it began to send with the fault"
    elif on[0].parameters != fault.model_dump(exclude_none=True):
        yield f"the workload was sent with {on[0].parameters}"
    elif off and off[0].at_record <= on[0].at_record:
        yield f"the workload sent no record with the fault, from record {on[0].at_record:,} on"
    if early := [event for event in off if heal is None or event.index < heal.index]:
        yield f"the workload was sent without the fault from record {early[0].at_record:,} on"
