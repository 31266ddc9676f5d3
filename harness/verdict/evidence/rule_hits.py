"""Whether a rule inside a JVM acted while its fault was injected, and in one JVM alone."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.faults.fault import faults
from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, EngineClock
from streamquake.harness.verdict.evidence.node_faults import ended_by_fault
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, first_heal_call
from streamquake.reports.record.fault_events import FaultInEffect, FaultStillInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import ContainerDied


def hits_outside_injection(attempt: StepAttempt, history: History) -> Iterator[str]:
    """A message for each node on which the rules of a fault acted first, by the JVM's own clock,
    before its injection was called or after its effect was recorded. Faults without rules have no
    such moment."""
    began = attempt[FaultInEffect]
    for node, hit_ns in EngineClock(history).moments_of(began.evidence, "first_hit"):
        early_s, late_s = (began.start_ns - hit_ns) / 1e9, (hit_ns - began.at_ns) / 1e9
        if early_s > STAMPS_S:
            yield f"its rule acted on {node} {early_s:.1f} s before its injection was called"
        if late_s > STAMPS_S:
            yield f"its rule acted on {node} {late_s:.1f} s after its effect was recorded"


def rules_of_ended_jvms(attempt: StepAttempt, history: History) -> Iterator[str]:
    """A message for each node whose JVM ended, and in which rules were verified afterwards, or
    should have been in place until their heal: a new JVM has none. Another fault may end it."""
    began = attempt[FaultInEffect]
    fault = faults.get(began.fault)
    if fault is None or not fault.leaves_agent:
        return
    heal = first_heal_call(began, history)
    until = heal.index if fault.lasts and heal is not None else -1
    verified = [each for each in history.of(FaultStillInEffect) if each.step == began.step]
    for node in began.nodes or ():
        last = max((each.index for each in verified if (each.evidence or {}).get(node)), default=-1)
        for died in history.of(ContainerDied):
            if died.node != node or died.index < began.index:
                continue
            if died.index < last:
                yield f"{node} ended at {died.at_s:.1f} s, and its rules were verified afterwards"
            elif died.index < until and not ended_by_fault("ends_process", died, history):
                yield f"{node} ended at {died.at_s:.1f} s, and its rules with it, before their heal"
